// What touches in a step, and what it does: the calls of the contact solver, with errors that name the tick.
#include "contact/soil.h"
#include "sim/half_steps.h"

// How often a step is solved anew for what went through a skin. Each round adds the points that it lacked.
enum { MAX_ROUNDS = 4 };

// Waits for ground that is paged in.
static us_status find_contacts(us_sim *s) {
    us_status status;
    do {
        status = usi_collide(s->contacts, &s->now.contact, s->now.q, s->now.v);
    } while (status &&
             (s->contacts->is_residency_error ? usi_hold_lost(s)
                                              : status == US_ERR_LIMIT && usi_make_room_for_contacts(s)));
    if (status && s->contacts->is_residency_error) {
        const us_error *why = &s->contacts->residency_error;
        us_place place = {why->file[0] ? why->file : NULL, 0, 0, NULL};
        return us_error_set(&s->error, status, &place, why->remedy, "tick %lld, stage collide: %.400s",
                            (long long)s->now.tick[0], why->message);
    }
    if (status == US_ERR_LIMIT) {
        const usi_contacts *c = s->contacts;
        return us_error_set(&s->error, status, NULL,
                            s->has_fixed_room ? "give the world a larger max-contact"
                                              : "free memory, or take shapes with fewer triangles",
                            "tick %lld, stage collide: %d %s, and room for %d", (long long)s->now.tick[0],
                            c->error_count,
                            c->is_pair_error ? "pairs of shapes are near each other" : "contact points",
                            c->is_pair_error ? c->max_pair : c->max_contact);
    }
    if (status) return usi_diverged(s, "collide", NULL);
    for (int32_t i = 0; i < s->model->n_loose; i++)
        s->next.contact.parted[i] |= !s->contacts->collide.overlap[i];
    usi_find_islands(s->contacts);
    return US_OK;
}

us_status usi_find_contacts(us_sim *s) {
    us_status status = usi_deformables_check(s);
    if (status) return status;
    usi_forget_passed(s->contacts);
    return find_contacts(s);
}

bool usi_solve_contacts_once(us_sim *s, const us_command *c) {
    const usi_actuation actuation = usi_actuation_of(s);
    const usi_contact_input push = {.q = s->now.q,
                                    .v = s->now.v,
                                    .a = s->now.a,
                                    .torque = c ? c->torque : NULL,
                                    .wrench = c ? c->wrench : NULL,
                                    .actuation = &actuation,
                                    .drive_effort = s->next.drive_effort,
                                    .out_q = s->end_q,
                                    .out_v = s->end_v};
    return usi_solve_islands(s->contacts, &s->now.contact, &s->next.contact, &push);
}

us_status usi_solve_contacts(us_sim *s, const us_command *c) {
    // More room for contacts may have been made meanwhile: all that is solved from is looked up anew.
    for (int i = 0; usi_solve_contacts_once(s, c); i++) {
        if (i == MAX_ROUNDS || !usi_find_passed(s->contacts, &s->now.contact)) return US_OK;
        us_status status = find_contacts(s);
        if (status) return status;
    }
    const char *ground = usi_silent_ground(s->contacts);
    if (ground)
        return us_error_set(&s->error, US_ERR_VALUE, NULL,
                            "check the numbers in its <pair>, and what its act answers: numbers that are not "
                            "negative, stiffness and hold greater than 0",
                            "tick %lld, stage contact: the ground model \"%s\" gave no usable answer",
                            (long long)s->now.tick[0], ground);
    for (int32_t i = 0; i < s->contacts->islands.n_island; i++) {
        int32_t pair = s->contacts->islands.island[i].refused - 1;
        if (pair < 0) continue;
        return us_error_set(
            &s->error, US_ERR_VALUE, NULL, "check the model's parameters in its <pair>, and what it answers",
            "tick %lld, stage contact: the interaction model \"%s\" gave no usable law",
            (long long)s->now.tick[0], usi_pair_model_name(s->model, s->now.contact.pair_model[pair]));
    }
    return usi_diverged(s, "contact", NULL);
}
