// Contact events: what the lists of contacts of two steps say.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "query_world.h"

enum { MAX_PAIR = 400 };

// The pairs of shapes that have contact points, each once.
typedef struct pairs {
    int32_t n;
    int32_t low[MAX_PAIR], high[MAX_PAIR];
} pairs;

static bool has(const pairs *p, int32_t a, int32_t b) {
    for (int32_t i = 0; i < p->n; i++) {
        if (p->low[i] == (a < b ? a : b) && p->high[i] == (a < b ? b : a)) return true;
    }
    return false;
}

static pairs touching(const us_sim *sim) {
    pairs p = {.n = 0};
    for (int32_t i = 0; i < us_sim_n_contact(sim); i++) {
        us_contact c = us_sim_get_contact(sim, i);
        if (has(&p, c.shape_a, c.shape_b)) continue;
        assert_true(p.n < MAX_PAIR);
        p.low[p.n] = c.shape_a < c.shape_b ? c.shape_a : c.shape_b;
        p.high[p.n++] = c.shape_a < c.shape_b ? c.shape_b : c.shape_a;
    }
    return p;
}

// Every change is one event and every event is a change. Returns how many.
static int32_t judge(const us_sim *sim, const pairs *before) {
    pairs now = touching(sim);
    int32_t n_change = 0, n = us_sim_n_contact_event(sim);
    for (int32_t i = 0; i < now.n; i++)
        n_change += !has(before, now.low[i], now.high[i]);
    for (int32_t i = 0; i < before->n; i++)
        n_change += !has(&now, before->low[i], before->high[i]);
    assert_int_equal(n, n_change);
    for (int32_t i = 0; i < n; i++) {
        us_contact_event e = us_sim_get_contact_event(sim, i);
        assert_int_equal(has(&now, e.shape_a, e.shape_b), e.is_begin);
        assert_int_equal(has(before, e.shape_a, e.shape_b), !e.is_begin);
        for (int32_t k = 0; k < i; k++) {
            us_contact_event o = us_sim_get_contact_event(sim, k);
            assert_false((o.shape_a == e.shape_a && o.shape_b == e.shape_b) ||
                         (o.shape_a == e.shape_b && o.shape_b == e.shape_a));
        }
    }
    return n;
}

static const char *const bounce =
    "<scene name=\"bounce\" version=\"1\"><world step=\"1 ms\"><shape type=\"plane\"/></world>"
    "<pair a=\"default\" b=\"default\" restitution=\"0.8\"/>"
    "<object name=\"ball\" xyz=\"0 0 0.5\"><link name=\"ball\" density=\"1000\">"
    "<shape type=\"sphere\" size=\"0.1\"/></link></object></scene>";

static void a_bouncing_ball_begins_and_ends_once_a_bounce(void **state) {
    (void)state;
    query_world w = query_world_text(bounce);
    assert_int_equal(us_sim_n_contact_event(w.sim), 0);
    int n_begin = 0, n_end = 0;
    // Falls 0.4 m: first contact near 0.286 s; then bounces of 0.457, 0.366, 0.292 s: three by 1.2 s.
    for (int i = 0; i < 1200; i++) {
        pairs before = touching(w.sim);
        query_world_step(&w, 1);
        judge(w.sim, &before);
        for (int32_t k = 0; k < us_sim_n_contact_event(w.sim); k++) {
            us_contact_event e = us_sim_get_contact_event(w.sim, k);
            int32_t ball = query_body(&w, "ball/ball").i;
            assert_true((e.body_a.i == ball && e.body_b.i == -1) || (e.body_b.i == ball && e.body_a.i == -1));
            if (n_begin == 0) query_near("first contact", us_sim_get_time(w.sim), sqrt(0.8 / 9.81), 3e-3);
            n_begin += e.is_begin;
            n_end += !e.is_begin;
        }
    }
    assert_int_equal(n_begin, 3);
    assert_int_equal(n_end, 3);
    us_contact_event none = us_sim_get_contact_event(w.sim, us_sim_n_contact_event(w.sim));
    assert_true(none.shape_a == -1 && none.shape_b == -1);
    query_world_free(&w);
}

// Compounds, so that pairs of shapes are several pairs of convex parts, in a pit.
static query_world crowd(void) {
    char text[8000];
    int n = snprintf(text, sizeof text,
                     "<scene name=\"crowd\" version=\"1\"><world step=\"2 ms\"><shape type=\"height-field\" "
                     "nx=\"21\" ny=\"21\" dx=\"0.1\" dy=\"0.1\" expression=\"0.5*(x*x+y*y)\"/></world>");
    for (int i = 0; i < 14; i++) {
        const char *shape = i % 3 == 0 ? "<shape type=\"sphere\" size=\"0.09\"/>"
                            : i % 3 == 1
                                ? "<shape type=\"box\" size=\"0.15 0.12 0.1\"/>"
                                : "<shape type=\"union\"><shape type=\"box\" size=\"0.2 0.06 0.06\"/>"
                                  "<shape type=\"box\" size=\"0.06 0.06 0.2\"/></shape>";
        n += snprintf(
            text + n, sizeof text - (size_t)n,
            "<object name=\"o%d\" xyz=\"%g %g %g\"><link name=\"l\" density=\"800\">%s</link></object>", i,
            0.3 * sin(2.4 * i), 0.3 * cos(2.4 * i), 0.4 + 0.12 * i, shape);
    }
    snprintf(text + n, sizeof text - (size_t)n, "</scene>");
    return query_world_text(text);
}

static void a_crowd_has_the_events_that_its_contacts_say(void **state) {
    (void)state;
    query_world w = crowd();
    int32_t n_event = 0;
    for (int i = 0; i < 1000; i++) {
        pairs before = touching(w.sim);
        if (i % 5 == 0) us_sim_poison(w.sim);
        query_world_step(&w, 1);
        n_event += judge(w.sim, &before);
        int32_t n = us_sim_n_contact_event(w.sim);
        us_sim_poison(w.sim);
        assert_int_equal(us_sim_n_contact_event(w.sim), n);
    }
    assert_true(n_event > 50);
    query_world_free(&w);
}

static void after_a_restore_the_next_step_has_the_same_events(void **state) {
    (void)state;
    query_world w = crowd();
    static us_contact_event events[200][32];
    int32_t count[200];
    query_world_step(&w, 250);
    size_t length = 0;
    assert_int_equal(us_sim_save(w.sim, NULL, 0, &length), US_OK);
    void *bytes = malloc(length);
    assert_non_null(bytes);
    assert_int_equal(us_sim_save(w.sim, bytes, length, &length), US_OK);
    int32_t total = 0;
    for (int i = 0; i < 200; i++) {
        query_world_step(&w, 1);
        count[i] = us_sim_n_contact_event(w.sim);
        total += count[i];
        assert_true(count[i] <= 32);
        for (int32_t k = 0; k < count[i]; k++)
            events[i][k] = us_sim_get_contact_event(w.sim, k);
    }
    assert_true(total > 10);
    assert_int_equal(us_sim_restore(w.sim, bytes, length), US_OK);
    assert_int_equal(us_sim_n_contact_event(w.sim), 0);
    for (int i = 0; i < 200; i++) {
        query_world_step(&w, 1);
        assert_int_equal(us_sim_n_contact_event(w.sim), count[i]);
        for (int32_t k = 0; k < count[i]; k++) {
            us_contact_event e = us_sim_get_contact_event(w.sim, k);
            assert_true(e.shape_a == events[i][k].shape_a && e.shape_b == events[i][k].shape_b &&
                        e.is_begin == events[i][k].is_begin);
        }
    }
    while (us_sim_n_contact_event(w.sim) == 0)
        query_world_step(&w, 1);
    assert_int_equal(us_sim_reset(w.sim), US_OK);
    assert_int_equal(us_sim_n_contact_event(w.sim), 0);
    free(bytes);
    query_world_free(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bouncing_ball_begins_and_ends_once_a_bounce),
        cmocka_unit_test(a_crowd_has_the_events_that_its_contacts_say),
        cmocka_unit_test(after_a_restore_the_next_step_has_the_same_events),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
