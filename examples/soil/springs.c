// A law of soil of one's own, as a plug-in: springs.
//
// Soil as a bed of springs that never tire: the load is stiffness times sinkage, the shear of a wheel goes
// against the sliding of its rim up to friction times the load, and nothing leans. So a wheel of weight W
// rests at a sinkage of W / stiffness, and one that slides is braked by friction times W.
//
//     <pair a="sand" b="steel" model="springs">
//       <number key="stiffness" value="2e4"/>   N/m
//       <number key="friction" value="0.4"/>
//       <number key="slow-speed" value="0.01"/> m/s: below it the shear falls with the speed
//     </pair>
#include <math.h>
#include <understudy/soil_law.h>

// The state: steps that it has been in the soil, and m that its rim has slid there.
enum { STEPS, SLID, N_STATE };

static bool act_as_springs(const us_soil_touch *touch, double *state, us_soil_answer *answer, void *user) {
    (void)user;
    double k = us_property_number(touch->parameters, touch->n_parameter, "stiffness", 2e4);
    double mu = us_property_number(touch->parameters, touch->n_parameter, "friction", 0.4);
    double slow = us_property_number(touch->parameters, touch->n_parameter, "slow-speed", 0.01);
    if (!(k > 0 && mu >= 0 && slow > 0)) return false;  // the step fails

    double load = k * fmax(touch->sinkage, 0);
    answer->force.z = load;
    answer->stiffness = k;
    answer->damping = 2 * sqrt(k * fmax(load, 1) / fmax(touch->history.gravity, 0.1));
    answer->friction = mu;  // of what rests
    answer->hold = 100 * k;

    // Sliding of the rim over the soil, along and across; the shear goes against it. `drag` is how fast it
    // falls with the speed: at most mu times the load over the speed.
    double r = touch->wheel.radius, u = touch->vx - r * touch->spin, v = touch->vy;
    double speed = sqrt(u * u + v * v), over = mu * load / fmax(speed, slow);
    answer->force.x = -over * u;
    answer->force.y = -over * v;
    answer->moment = r * answer->force.x;  // all of the pull is shear: no lean
    answer->drag[0] = answer->drag[1] = fmax(over, 1e-3);

    state[STEPS] += 1;
    state[SLID] += speed * touch->step;
    return true;
}

// Every law of this library. The program asks for them when the scene says <plugin file="springs.so"/>.
// It is found by its name, which C++ would change.
#ifdef __cplusplus
extern "C"
#endif
    US_API const us_soil_law *
    us_plugin_soil_laws(int32_t *out_n);
US_API const us_soil_law *us_plugin_soil_laws(int32_t *out_n) {
    static const us_soil_law laws[] = {
        {US_SOIL_LAW_ABI, (int32_t)sizeof(us_soil_law), "springs", N_STATE, 0, NULL, act_as_springs}};
    *out_n = (int32_t)(sizeof laws / sizeof *laws);
    return laws;
}
