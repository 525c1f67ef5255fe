#include "live_world.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "wire/messages.h"

// A ground, a slab that is part of it, a stone that lies loose, a gate on a post that stands, and a door that
// hangs on the world.
#define OBJECTS                                                                                            \
    "<material name='soil'/><material name='rock'/><material name='rubber'/>"                              \
    "<pair a='rock' b='soil' static-friction='0.7' kinetic-friction='0.6'/>"                               \
    "<object name='stone' xyz='3 0 0.1'><link name='core' density='2600'><shape type='sphere' size='0.1' " \
    "surface='rock'/></link></object>"                                                                     \
    "<object name='post' base='fixed' xyz='-3 0 0.5'><link name='pole' density='500'><shape type='box' "   \
    "size='0.2 0.2 1'/></link>"                                                                            \
    "<link name='gate' density='500'><shape type='box' size='0.8 0.05 0.5' xyz='0.6 0 0'/></link>"         \
    "<joint name='hinge' type='revolute' parent='pole' child='gate' axis='0 0 1' lower='-1' "              \
    "upper='1'/></object>"                                                                                 \
    "<object name='frame'><link name='a' density='500'><shape type='box' size='0.1 0.1 1' xyz='0 0 "       \
    "-0.5'/></link>"                                                                                       \
    "<link name='b' density='500'><shape type='box' size='0.1 0.1 1' xyz='0 0 -0.5'/></link>"              \
    "<joint name='ja' type='revolute' parent='world' child='a' xyz='0 5 3' axis='0 1 0'/>"                 \
    "<joint name='jb' type='revolute' parent='world' child='b' xyz='1 5 3' axis='0 1 0'/></object>"
#define WORLD                                                                                          \
    "<world step='1 ms'><shape name='ground' type='half-space' surface='soil'/>"                       \
    "<shape name='slab' type='box' size='1 1 0.1' xyz='0 -4 0.05' surface='rock'/><shape name='twin' " \
    "type='sphere' size='0.1' xyz='9 9 0'/>"                                                           \
    "<shape name='twin' type='sphere' size='0.1' xyz='9 8 0'/></world>"
const char live_plain_scene[] = "<scene name='plain' version='1'>" WORLD OBJECTS "</scene>";
#define ROVER                                                                                             \
    "<default name='wheel'><drive kd='40'/></default><default name='steer'><drive kp='800' "              \
    "kd='60'/></default>"                                                                                 \
    "<robot name='k10' file='../models/k10.urdf' base='floating' xyz='0 0 0.0'><surface link='*_wheel' "  \
    "surface='rubber'/>"                                                                                  \
    "<drive joint='front_left_steer' default='steer'/><drive joint='rear_left_steer' default='steer'/>"   \
    "<drive joint='front_right_steer' default='steer'/><drive joint='rear_right_steer' default='steer'/>" \
    "<drive joint='front_left_drive' default='wheel'/><drive joint='rear_left_drive' default='wheel'/>"   \
    "<drive joint='front_right_drive' default='wheel'/><drive joint='rear_right_drive' default='wheel'/>" \
    "<locomotion type='all-wheel' max-speed='0.9 m/s' max-turn='1.5 rad/s' max-acceleration='1 m/s^2'>"   \
    "<wheel drive='front_left_drive' steer='front_left_steer' radius='0.18 m'/><wheel "                   \
    "drive='front_right_drive' steer='front_right_steer' "                                                \
    "radius='0.18 m'/>"                                                                                   \
    "<wheel drive='rear_left_drive' steer='rear_left_steer' radius='0.18 m'/><wheel "                     \
    "drive='rear_right_drive' "                                                                           \
    "steer='rear_right_steer' radius='0.18 "                                                              \
    "m'/>"                                                                                                \
    "</locomotion>"
const char live_robot_scene[] = "<scene name='robot' version='1'>" WORLD OBJECTS ROVER "</robot></scene>";
const char live_battery_scene[] = "<scene name='battery' version='1'>" WORLD OBJECTS ROVER
                                  "<battery capacity='500 Wh' idle='40 W'/></robot></scene>";

void live_ok(us_status status, const us_error *err) {
    char text[1200];
    us_error_format(err, text, sizeof text);
    if (status) fail_msg("%s: %s", us_status_text(status), text);
}

us_spec *live_load(const char *scene) {
    us_error err = {0};
    us_spec *spec = NULL;
    live_ok(us_spec_load_text(scene, strlen(scene), US_SOURCE_DIR "/scenes/test.xml", NULL, &spec, &err),
            &err);
    return spec;
}

static us_world *open_world(const char *scene, void (*log)(void *, int32_t, const char *), void *context) {
    us_error err = {0};
    us_spec *spec = live_load(scene);
    us_world *world = NULL;
    us_world_def def = us_world_def_default();
    def.proxy.enable_motor_servers = false;
    def.log = log;
    def.log_context = context;
    live_ok(us_world_create(spec, &def, &world, &err), &err);
    us_spec_destroy(spec);
    return world;
}

us_world *live_open(const char *scene) { return open_world(scene, NULL, NULL); }

static void keep_line(void *context, int32_t level, const char *text) {
    live_log *log = context;
    const size_t n = strlen(log->text);
    snprintf(log->text + n, sizeof log->text - n, "%d %s\n", (int)level, text);
}

us_world *live_open_logged(const char *scene, live_log *log) {
    log->text[0] = 0;
    return open_world(scene, keep_line, log);
}

void live_step(us_world *world, int n) {
    us_error err = {0};
    for (int i = 0; i < n; i++) {
        us_world_poll(world);
        live_ok(us_world_step(world, &err), &err);
    }
}

void live_on_reply(void *context, int64_t id, us_status status, const char *text) {
    live_reply *r = context;
    r->n++;
    r->id = id;
    r->status = status;
    snprintf(r->text, sizeof r->text, "%s", text);
}

live_reply live_say(us_world *world, const char *text) {
    live_reply r = {0};
    assert_int_equal(us_world_post(world, "test", text, live_on_reply, &r, 7), US_OK);
    us_world_poll(world);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.id, 7);
    return r;
}

void live_done(us_world *world, const char *text) {
    live_reply r = live_say(world, text);
    if (r.status) fail_msg("%s: %s", text, r.text);
}

// Refused with a reason, and nothing has changed.
void live_refused(us_world *world, const char *text, us_status status, const char *part) {
    uint64_t hash = us_sim_hash(us_world_get_sim(world));
    uint32_t epoch = us_world_get_revision(world);
    us_pace_request wish = us_world_get_pace_request(world);
    live_reply r = live_say(world, text);
    if (!strstr(r.text, part)) fail_msg("%s: \"%s\" is not in: %s", text, part, r.text);
    assert_int_equal(r.status, status);
    assert_true(us_sim_hash(us_world_get_sim(world)) == hash);
    assert_int_equal(us_world_get_revision(world), epoch);
    assert_true(us_world_get_pace_request(world).change == wish.change);
}

double live_value(us_world *world, const char *name) {
    us_sim *sim = us_world_get_sim(world);
    int32_t id = us_sim_find_value(sim, name);
    if (id < 0) fail_msg("there is no value \"%s\"", name);
    return us_sim_get_value(sim, id);
}

us_pose live_pose(us_world *world, const char *link) {
    us_body body = us_model_find_body(us_world_view_model(world), link);
    assert_true(body.i >= 0);
    return us_sim_get_pose(us_world_get_sim(world), body);
}

bool live_has_link(us_world *world, const char *link) {
    return us_model_find_body(us_world_view_model(world), link).i >= 0;
}

void live_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance))
        fail_msg("%.17g is not within %g of %.17g", value, tolerance, expected);
}

static void tell(us_world *world, const char *topic, us_msg_twist twist) {
    uint8_t bytes[128];
    size_t length = 0;
    assert_int_equal(us_message_encode(usi_type_twist, &twist, bytes, sizeof bytes, &length), US_OK);
    assert_int_equal(us_proxy_post(us_world_get_proxy(world), topic, usi_type_twist, "test", bytes, length),
                     US_OK);
}

void live_drive(us_world *world, double v) {
    tell(world, "/k10/cmd_vel", (us_msg_twist){{v, 0, 0}, {0, 0, 0.3}});
}

void live_walk(us_world *world, double vx, int n) {
    for (int i = 0; i < n; i += 100) {
        tell(world, "/hexapod/cmd_vel", (us_msg_twist){{vx, 0, 0}, {0, 0, 0}});
        live_step(world, n - i < 100 ? n - i : 100);
    }
}

const char *live_walker_scene(bool is_flat) {
    static char text[32768];
    FILE *file = fopen(US_SOURCE_DIR "/scenes/hexapod.xml", "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    if (is_flat) {
        // The height field becomes a plane: its bumps are the only thing in the expression.
        char *at = strstr(text, "expression=\"");
        assert_non_null(at);
        at += strlen("expression=\"");
        while (*at && *at != '"')
            *at++ = ' ';
        at[-1] = '0';
    }
    return text;
}

us_verify_result live_verify(const char *scene, const char *path) {
    us_error err = {0};
    us_recording *recording = NULL;
    us_verify_result result = {0};
    us_spec *spec = live_load(scene);
    live_ok(us_recording_open(path, NULL, &recording, &err), &err);
    live_ok(us_world_verify(spec, recording, NULL, NULL, &result, &err), &err);
    us_recording_close(recording);
    us_spec_destroy(spec);
    return result;
}
