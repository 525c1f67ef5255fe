// The scene as others' viewers hear it on the network: `understudy run --scene-topics`, and a program that
// has the types of RViz and grid_map alone.
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net_peer.h"

// Ground that rises with x and y, each by its own slope.
static const double SLOPE_X = 0.02, SLOPE_Y = -0.01;

static net_peer *p;
static int32_t still, moving, contacts, ground, ruts, truth;

static void write_scene(const char *path) {
    net_write_scene(
        path,
        "<shape name='ground' type='height-field' nx='121' ny='81' dx='0.1' dy='0.1' xyz='1 0 0.5' "
        "expression='0.02*x - 0.01*y' surface='sand' bed='5 cm'/>"
        "<shape name='slab' type='box' size='2 1 0.5' xyz='5 0 3' rgba='0.25 0.5 0.75 1'/>"
        "<shape name='ball' type='sphere' size='0.3' xyz='0 3 4'/>"
        "<shape name='post' type='cylinder' size='0.1 2' xyz='0 -3 4'/>"
        "<shape name='pill' type='capsule' size='0.2 0.6' xyz='-5 0 4'/>",
        "<material name='sand'><soil like='lunar'/></material><material name='rubber'/>",
        "<surface link='*_wheel' surface='rubber'/>");
    // The robot stands on the ground, which lies higher than usual.
    char *text = net_read_text(path), *at = strstr(text, "base='floating'>");
    assert_non_null(at);
    *at = 0;
    net_write_text(path, "%sbase='floating' xyz='0 0 0.52'>%s", text, at + strlen("base='floating'>"));
    free(text);
}

static int listen(void **state) {
    (void)state;
    write_scene("scene.xml");
    net_run("scene.xml --headless --quiet --scene-topics");
    // Late: what stands still was sent before.
    net_peer *early = net_open("cyclone");
    net_wait_until(early, 0.5);
    net_close(early);
    p = net_open("cyclone");
    still = net_listen(p, "/understudy/scene/still", usi_type_marker_array);
    ground = net_listen(p, "/understudy/scene/ground", usi_type_grid_map);
    moving = net_listen(p, "/understudy/scene/moving", usi_type_marker_array);
    contacts = net_listen(p, "/understudy/scene/contacts", usi_type_marker_array);
    ruts = net_listen(p, "/understudy/scene/ruts", usi_type_grid_map);
    truth = net_listen(p, "/understudy/truth/k10/odom", usi_type_odometry);
    return 0;
}

static const us_msg_marker *find_marker(const us_msg_marker_array *m, const char *ns) {
    for (uint32_t i = 0; i < m->markers._length; i++) {
        if (strcmp(m->markers._buffer[i].ns, ns) == 0) return &m->markers._buffer[i];
    }
    return NULL;
}

static void what_stands_still_reaches_who_comes_later(void **state) {
    (void)state;
    NET_WAIT(net_count(p, still) == 1);
    const us_msg_marker_array *m = net_decode(p, still, 0);
    assert_int_equal(m->markers._buffer[0].action, 3);  // all that was there before goes
    const us_msg_marker *slab = find_marker(m, "world/slab"), *ball = find_marker(m, "world/ball");
    const us_msg_marker *post = find_marker(m, "world/post"), *pill = find_marker(m, "world/pill");
    assert_non_null(slab);
    assert_non_null(ball);
    assert_non_null(post);
    assert_non_null(pill);
    assert_string_equal(slab->header.frame_id, "map");
    assert_int_equal(slab->type, 1);
    assert_true(slab->scale.x == 2 && slab->scale.y == 1 && slab->scale.z == 0.5);
    assert_true(slab->pose.position.x == 5 && slab->pose.position.z == 3 && slab->pose.orientation.w == 1);
    assert_true(slab->color.r == 0.25F && slab->color.a == 1);
    assert_int_equal(ball->type, 2);
    assert_true(fabs(ball->scale.x - 0.6) < 1e-12 && ball->scale.x == ball->scale.z);
    assert_int_equal(post->type, 3);
    assert_true(fabs(post->scale.x - 0.2) < 1e-12 && post->scale.z == 2);
    assert_int_equal(pill->type, 11);
    assert_true(pill->points._length > 300 && pill->points._length % 3 == 0);
    // Its surface is closed: the solid that the triangles enclose has nearly the volume of a capsule, and
    // less, since they lie inside it.
    double volume = 0;
    for (uint32_t i = 0; i < pill->points._length; i += 3) {
        const us_msg_point a = pill->points._buffer[i], b = pill->points._buffer[i + 1],
                           c = pill->points._buffer[i + 2];
        volume +=
            (a.x * (b.y * c.z - b.z * c.y) + a.y * (b.z * c.x - b.x * c.z) + a.z * (b.x * c.y - b.y * c.x)) /
            6;
    }
    const double pi = 3.141592653589793, whole = pi * 0.04 * 0.6 + 4.0 / 3 * pi * 0.008;
    if (!(volume > 0.9 * whole && volume < whole)) fail_msg("a volume of %g, not %g", volume, whole);
    // Ground is no marker.
    assert_null(find_marker(m, "world/ground"));
}

static void ground_is_a_map_of_heights(void **state) {
    (void)state;
    NET_WAIT(net_count(p, ground) == 1);
    const us_msg_grid_map *m = net_decode(p, ground, 0);
    assert_string_equal(m->header.frame_id, "map");
    assert_int_equal(m->layers._length, 1);
    assert_string_equal(m->layers._buffer[0], "elevation");
    assert_string_equal(m->basic_layers._buffer[0], "elevation");
    assert_int_equal(m->data._length, 1);
    const us_msg_float32_multi_array *d = &m->data._buffer[0];
    assert_string_equal(d->layout.dim._buffer[0].label, "column_index");
    assert_string_equal(d->layout.dim._buffer[1].label, "row_index");
    const uint32_t n_column = d->layout.dim._buffer[0].size, n_row = d->layout.dim._buffer[1].size;
    assert_int_equal(n_row, 121);
    assert_int_equal(n_column, 81);
    assert_int_equal(d->layout.dim._buffer[0].stride, n_row * n_column);
    assert_int_equal(d->layout.dim._buffer[1].stride, n_row);
    assert_int_equal(d->data._length, n_row * n_column);
    assert_true(fabs(m->info.resolution - 0.1) < 1e-12 && fabs(m->info.length_x - 12.1) < 1e-9 &&
                fabs(m->info.length_y - 8.1) < 1e-9);
    assert_true(fabs(m->info.pose.position.x - 1) < 1e-9 && fabs(m->info.pose.position.y) < 1e-9);
    // As grid_map reads it: row 0 and column 0 are at the greatest x and y.
    for (uint32_t row = 0; row < n_row; row++) {
        for (uint32_t column = 0; column < n_column; column++) {
            const double x = 0.5 * m->info.length_x - (row + 0.5) * m->info.resolution,
                         y = 0.5 * m->info.length_y - (column + 0.5) * m->info.resolution;
            const double z = (double)d->data._buffer[column * n_row + row];
            if (fabs(z - (0.5 + SLOPE_X * x + SLOPE_Y * y)) > 1e-6)
                fail_msg("%g m at %g, %g of the field", z, x, y);
        }
    }
}

static void what_moves_is_where_it_is(void **state) {
    (void)state;
    net_wait_match(p, moving);
    NET_WAIT(net_count(p, moving) > 0);
    // The first that is heard has everything.
    const us_msg_marker_array *m = net_decode(p, moving, 0);
    assert_int_equal(m->markers._buffer[0].action, 3);
    assert_non_null(find_marker(m, "k10/base"));
    static const char *const wheels[] = {"front_left", "front_right", "rear_left", "rear_right"};
    for (int i = 0; i < 4; i++) {
        char name[60];
        snprintf(name, sizeof name, "k10/%s_wheel", wheels[i]);
        const us_msg_marker *wheel = find_marker(m, name);
        if (!wheel) fail_msg("%s is not there", name);
        assert_int_equal(wheel->type, 3);
    }
}

static void contacts_are_lines_along_their_forces(void **state) {
    (void)state;
    net_wait_match(p, contacts);
    int64_t i = 0;
    const us_msg_marker_array *m = NULL;
    NET_WAIT(net_count(p, contacts) > i && (m = net_decode(p, contacts, i++)) &&
             m->markers._buffer[0].points._length >= 8);
    const us_msg_marker *lines = &m->markers._buffer[0];
    assert_int_equal(m->markers._length, 1);
    assert_int_equal(lines->type, 5);
    assert_int_equal(lines->points._length % 2, 0);
    double force = 0;
    for (uint32_t k = 0; k < lines->points._length; k += 2)
        force += (lines->points._buffer[k + 1].z - lines->points._buffer[k].z) / 1e-3;
    assert_true(force > 0);  // on what moves, upwards
}

static void ruts_are_a_map_of_what_was_touched(void **state) {
    (void)state;
    net_wait_match(p, ruts);
    us_writer *writer = net_speak(p, "/k10/cmd_vel", usi_type_twist);
    const us_msg_twist twist = {.linear.x = 0.5};
    const double until = net_clock() + NET_PATIENCE;
    double deepest = 0;
    int64_t seen = 0;
    uint32_t n_known = 0;
    while (deepest > -1e-3) {
        if (net_clock() > until) net_fail("waited for", "ruts");
        net_say(writer, usi_type_twist, &twist);
        for (int k = 0; k < 50; k++)
            net_nap();
        for (; seen < net_count(p, ruts); seen++) {
            const us_msg_grid_map *m = net_decode(p, ruts, seen);
            assert_int_equal(m->layers._length, 2);
            assert_string_equal(m->layers._buffer[0], "elevation");
            assert_string_equal(m->layers._buffer[1], "change");
            const us_msg_float32_multi_array *z = &m->data._buffer[0], *d = &m->data._buffer[1];
            assert_int_equal(z->data._length, d->data._length);
            const uint32_t n_row = z->layout.dim._buffer[1].size;
            n_known = 0;
            for (uint32_t k = 0; k < d->data._length; k++) {
                assert_int_equal(isnan(d->data._buffer[k]), isnan(z->data._buffer[k]));
                if (isnan(d->data._buffer[k])) continue;
                n_known++;
                deepest = fmin(deepest, (double)d->data._buffer[k]);
                // What it was and how it has changed is what it is.
                const double x = m->info.pose.position.x + 0.5 * m->info.length_x -
                                 (k % n_row + 0.5) * m->info.resolution,
                             y = m->info.pose.position.y + 0.5 * m->info.length_y -
                                 (k / n_row + 0.5) * m->info.resolution;
                const double was = 0.5 + SLOPE_X * (x - 1) + SLOPE_Y * y;
                if (fabs((double)z->data._buffer[k] - was - (double)d->data._buffer[k]) > 1e-5)
                    fail_msg("%g m at %g, %g: it was %g and has changed by %g", (double)z->data._buffer[k], x,
                             y, was, (double)d->data._buffer[k]);
            }
        }
    }
    assert_true(n_known >= 64 * 64);
    // And the robot has gone on: its markers came again.
    NET_WAIT(net_count(p, moving) > 3);
}

// Twelve hundred stones are more than one message takes: who comes late gets all of them all the same.
static void a_world_of_many_stones_comes_in_parts(void **state) {
    (void)state;
    enum { N = 1200 };
    assert_int_equal(net_end(SIGINT), 0);
    FILE *f = fopen("stones.xml", "w");
    assert_non_null(f);
    fprintf(f,
            "<scene name='stones' version='1'><world step='1 ms'><shape name='ground' type='half-space'/>");
    for (int i = 0; i < N; i++)
        fprintf(f, "<shape name='stone%d' type='cone' size='0.2 0.3' xyz='%d %d 0'/>", i, i % 40, 5 + i / 40);
    fprintf(f, "</world><robot name='arm' file='%s/models/arm6.urdf'/></scene>", US_SOURCE_DIR);
    assert_int_equal(fclose(f), 0);
    net_run("stones.xml --headless --quiet --scene-topics");
    net_peer *early = net_open("cyclone");
    net_wait_until(early, 1);
    net_close(early);
    net_peer *q = net_open("cyclone");
    const int32_t ear = net_listen(q, "/understudy/scene/still", usi_type_marker_array);
    static bool is_there[N];
    int n = 0, n_message = 0;
    const double until = net_clock() + NET_PATIENCE;
    while (n < N) {
        if (net_clock() > until) fail_msg("%d of %d stones in %d messages", n, N, n_message);
        net_nap();
        for (; n_message < net_count(q, ear); n_message++) {
            const net_heard heard = net_get(q, ear, n_message);
            assert_true(heard.length < 3 << 20);
            // Without decoding all of it: the names are in the bytes.
            for (size_t at = 0; at + 16 < heard.length; at++) {
                int stone = -1;
                if (memcmp(heard.bytes + at, "world/stone", 11) == 0)
                    stone = (int)strtol((const char *)heard.bytes + at + 11, NULL, 10);
                if (stone < 0 || stone >= N || is_there[stone]) continue;
                is_there[stone] = true;
                n++;
            }
        }
    }
    assert_true(n_message > 3);
    net_close(q);
}

static void without_being_asked_nothing_of_the_scene_is_on_the_network(void **state) {
    (void)state;
    assert_int_equal(net_end(SIGINT), 0);
    net_run("scene.xml --headless --quiet");
    net_peer *q = net_open("cyclone");
    net_wait_until(q, 0.3);
    us_endpoint list[200];
    int32_t n = 0;
    NET_WAIT(!us_bus_list(net_bus(q), list, 200, &n) && n > 20);
    for (int32_t i = 0; i < n && i < 200; i++)
        assert_false(list[i].is_writer && strstr(list[i].topic, "understudy/scene"));
    net_close(q);
    assert_int_equal(net_end(SIGINT), 0);
}

static int end(void **state) {
    net_close(p);
    return net_teardown(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_stands_still_reaches_who_comes_later),
        cmocka_unit_test(ground_is_a_map_of_heights),
        cmocka_unit_test(what_moves_is_where_it_is),
        cmocka_unit_test(contacts_are_lines_along_their_forces),
        cmocka_unit_test(ruts_are_a_map_of_what_was_touched),
        cmocka_unit_test(a_world_of_many_stones_comes_in_parts),
        cmocka_unit_test(without_being_asked_nothing_of_the_scene_is_on_the_network),
    };
    return cmocka_run_group_tests(tests, listen, end);
}
