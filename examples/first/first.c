// Loads a world, steps it for a second, prints where everything is.
#include <understudy/understudy.h>

int main(void) {
    us_error err = US_ZERO;
    us_model *model = NULL;
    us_sim *sim = NULL;
    if (us_model_load("first.xml", NULL, &model, &err) || us_sim_create(model, NULL, &sim, &err))
        return us_error_print(stderr, &err);
    while (us_sim_get_time(sim) < 1)
        if (us_sim_step(sim, NULL)) return us_error_print(stderr, us_sim_view_error(sim));
    for (us_body b = {0}; b.i < us_model_get_counts(model).n_body; b.i++)
        printf("%s: %.3f %.3f %.3f\n", us_model_body_name(model, b), us_sim_get_pose(sim, b).p.x,
               us_sim_get_pose(sim, b).p.y, us_sim_get_pose(sim, b).p.z);
    us_sim_destroy(sim);
    us_model_destroy(model);
}
