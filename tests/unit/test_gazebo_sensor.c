// Sensors that a robot file asks for in <gazebo> elements.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/lidar.h"
#include "understudy/network.h"

static us_spec *load(const char *gazebo) {
    char text[6000];
    us_error err = {0};
    us_spec *spec = NULL;
    snprintf(text, sizeof text,
             "<robot name='r'><link name='base'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' "
             "ixy='0' ixz='0' iyz='0'/></inertial></link>%s</robot>",
             gazebo);
    if (us_spec_load_text(text, strlen(text), "r.urdf", NULL, &spec, &err)) fail_msg("%s", err.message);
    return spec;
}

static const char *warning_of(const us_spec *spec, const char *part) {
    for (int32_t i = 0; i < us_spec_get_counts(spec).n_warning; i++) {
        const us_error *w = us_spec_view_warning(spec, i);
        if (strstr(w->message, part)) return w->message;
    }
    return NULL;
}

static const us_sensor_def *find(const us_spec *spec, const char *name) {
    const us_network_def *d = us_spec_view_network(spec, 0);
    for (int32_t i = 0; i < d->n_sensor; i++) {
        if (strcmp(d->sensors[i].name, name) == 0) return &d->sensors[i];
    }
    return NULL;
}

static double setting(const us_sensor_def *s, const char *name) {
    for (int32_t i = 0; i < s->n_setting; i++) {
        if (strcmp(s->settings[i].parameter, name) == 0) return s->settings[i].value;
    }
    return NAN;
}

static void an_imu_has_its_pose_rate_noise_and_topic(void **state) {
    (void)state;
    us_spec *spec =
        load("<gazebo reference='base'><sensor name='mast-imu' type='imu'><pose>0.1 0 0.5 0 0 1.5</pose>"
             "<update_rate>50</update_rate><topic>/head/imu</topic><always_on>1</always_on><imu>"
             "<angular_velocity><x><noise type='gaussian'><mean>0</mean><stddev>0.01</stddev></noise>"
             "</x><y><noise><stddev>0.01</stddev></noise></y><z><noise><stddev>0.01</stddev></noise></z>"
             "</angular_velocity><linear_acceleration><x><noise><stddev>0.2</stddev></noise></x><y>"
             "<noise><stddev>0.2</stddev></noise></y><z><noise><stddev>0.2</stddev></noise></z>"
             "</linear_acceleration></imu></sensor></gazebo>");
    const us_sensor_def *s = find(spec, "mast_imu");
    assert_non_null(s);
    assert_string_equal(s->kind->name, "imu");
    assert_true(s->rate == 50 && s->X_BS.p.x == 0.1 && s->X_BS.p.z == 0.5);
    assert_true(fabs(2 * atan2(s->X_BS.q.z, s->X_BS.q.w) - 1.5) < 1e-12);
    assert_true(setting(s, "spin-noise") == 0.01 && setting(s, "force-noise") == 0.2);
    const us_network_def *d = us_spec_view_network(spec, 0);
    int n = 0;
    for (int32_t i = 0; i < d->n_topic; i++)
        n += strcmp(d->topics[i].source, "mast_imu") == 0 && strcmp(d->topics[i].name, "/head/imu") == 0;
    assert_int_equal(n, 1);
    assert_null(warning_of(spec, "gazebo"));
    us_spec_destroy(spec);
}

static void a_ray_sensor_is_a_lidar(void **state) {
    (void)state;
    us_spec *spec =
        load("<gazebo reference='base'><sensor name='scan' type='gpu_ray'><update_rate>20</update_rate><ray>"
             "<scan><horizontal><samples>641</samples><min_angle>-1.2</min_angle><max_angle>1.2</max_angle>"
             "</horizontal><vertical><samples>3</samples><min_angle>-0.1</min_angle><max_angle>0.3"
             "</max_angle></vertical></scan><range><min>0.2</min><max>12</max><resolution>0.01"
             "</resolution></range><noise><stddev>0.03</stddev></noise></ray></sensor></gazebo>");
    const us_sensor_def *s = find(spec, "scan");
    if (!s) fail_msg("%s", warning_of(spec, "scan"));
    assert_true(s->kind->is_frame && s->rate == 20);
    const us_lidar_def *l = s->lidar;
    assert_int_equal(l->n_beam, 3);
    assert_true(fabs(l->beams[1].elevation - 0.1) < 1e-12 && fabs(l->beams[2].elevation - 0.3) < 1e-12);
    assert_true(l->start == -1.2 && fabs(l->sweep - 2.4) < 1e-12 && l->min_range == 0.2 &&
                l->max_range == 12);
    assert_true(l->quantum == 0.01 && l->range_noise == 0.03);
    // 640 gaps in 2.4 rad.
    assert_int_equal(l->columns, 1676);
    us_spec_destroy(spec);
}

static void a_camera_has_its_size_lens_and_depths(void **state) {
    (void)state;
    us_spec *spec = load(
        "<gazebo reference='base'><sensor name='eye' "
        "type='depth_camera'><update_rate>15</update_rate><camera>"
        "<horizontal_fov>1.2</horizontal_fov><image><width>320</width><height>200</height><format>L8</format>"
        "</image><distortion><k1>-0.1</k1></distortion><clip><near>0.1</near></clip></camera></sensor></"
        "gazebo>"
        "<gazebo reference='base'><sensor name='flat' "
        "type='camera'><camera><horizontal_fov>4</horizontal_fov>"
        "</camera></sensor></gazebo>");
    const us_sensor_def *s = find(spec, "eye");
    static const us_sensor_setting expected[] = {{"width", 320}, {"height", 200}, {"fov", 1.2},
                                                 {"k1", -0.1},   {"pixels", 0},   {"depth", 1}};
    assert_non_null(s);
    assert_string_equal(s->kind->name, "camera");
    assert_true(s->rate == 15);
    assert_int_equal(s->n_setting, 6);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(s->settings[i].parameter, expected[i].parameter);
        assert_true(s->settings[i].value == expected[i].value);
    }
    assert_non_null(strstr(warning_of(spec, "\"eye\""), "clip"));
    assert_non_null(strstr(warning_of(spec, "\"flat\""), "more than a flat picture can show"));
    assert_null(find(spec, "flat"));
    us_spec_destroy(spec);
}

static void what_is_not_understood_is_named_once(void **state) {
    (void)state;
    us_spec *spec =
        load("<gazebo reference='base'><sensor name='a' type='imu'><imu><linear_acceleration><x><noise>"
             "<bias_mean>0.1</bias_mean><stddev>0.1</stddev></noise></x></linear_acceleration>"
             "<orientation_reference_frame/></imu><plugin filename='libx.so'/></sensor></gazebo>"
             "<gazebo reference='base'><sensor name='b' type='thermal_camera'/></gazebo>"
             "<gazebo reference='base'><sensor name='c' type='telepathy'/></gazebo>"
             "<gazebo><sensor name='d' type='imu'/></gazebo>");
    const char *a = warning_of(spec, "\"a\"");
    assert_non_null(a);
    assert_non_null(strstr(a, "bias of noise"));
    assert_non_null(strstr(a, "differs from axis to axis"));
    assert_non_null(strstr(a, "orientation_reference_frame"));
    assert_non_null(strstr(a, "plugin"));
    assert_non_null(find(spec, "a"));
    assert_non_null(warning_of(spec, "\"thermal_camera\""));
    assert_null(find(spec, "b"));
    assert_non_null(warning_of(spec, "\"telepathy\""));
    assert_non_null(warning_of(spec, "\"d\""));
    assert_null(find(spec, "d"));
    us_spec_destroy(spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_imu_has_its_pose_rate_noise_and_topic),
        cmocka_unit_test(a_ray_sensor_is_a_lidar),
        cmocka_unit_test(a_camera_has_its_size_lens_and_depths),
        cmocka_unit_test(what_is_not_understood_is_named_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
