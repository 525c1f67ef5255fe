// The ROS 2 profile said as an interface of a robot's own (scenes/ros2-profile.xml): the same samples, byte
// by byte, as those that every robot has, of a run that drives.
#include "test_cli_support.h"
#include "understudy/record.h"

// The file without the lines from one that has `from` to one that has `to`.
static void write_without(const char *path, const char *text, const char *from, const char *to) {
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    bool is_out = false;
    for (const char *at = text; *at;) {
        const char *end = strchr(at, '\n');
        const size_t n = end ? (size_t)(end - at) + 1 : strlen(at);
        char line[1000];
        assert_true(n < sizeof line);
        snprintf(line, sizeof line, "%.*s", (int)n, at);
        if (from && strstr(line, from)) is_out = true;
        // Files are named from where the scene stands; and it drives.
        const char *back = strstr(line, "file=\"../"), *wheel = strstr(line, "_drive\" default=\"wheel\"/>");
        if (!is_out && back) {
            char moved[1400];
            size_t k = 0;
            for (const char *c = line; *c; c++) {
                if (strncmp(c, "../", 3) == 0) {
                    k += (size_t)snprintf(moved + k, sizeof moved - k, "%s/", US_SOURCE_DIR);
                    c += 2;
                } else {
                    moved[k++] = *c;
                }
            }
            moved[k] = 0;
            fputs(moved, f);
        } else if (!is_out && wheel) {
            fprintf(f, "%.*s_drive\" default=\"wheel\" velocity=\"2\"/>\n", (int)(wheel - line), line);
        } else if (!is_out) {
            fputs(line, f);
        }
        if (to && strstr(line, to)) is_out = false;
        at += n;
    }
    assert_int_equal(fclose(f), 0);
}

static char *read_whole(const char *path) {
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    char *text = calloc(1, 65536);
    assert_non_null(text);
    assert_true(fread(text, 1, 65535, f) > 1000);
    fclose(f);
    return text;
}

static us_recording *record(const char *scene, const char *file) {
    assert_code(run("run %s --time 2 --rate max --offline --headless --quiet --record %s", scene, file), 0);
    us_recording *r = NULL;
    us_error err = {0};
    if (us_recording_open(file, NULL, &r, &err)) fail_msg("%s", err.message);
    return r;
}

static int32_t channel_of(const us_recording *r, const char *topic) {
    for (int32_t i = 0; i < us_recording_get_info(r).n_channel; i++) {
        if (strcmp(us_recording_get_channel(r, i).topic, topic) == 0) return i;
    }
    fail_msg("%s is not in the recording", topic);
    return -1;
}

static bool next_of(us_recording *r, int32_t channel, us_recorded *out) {
    bool has = true;
    while (has) {
        assert_int_equal(us_recording_next(r, out, &has, NULL), US_OK);
        if (has && out->channel == channel) return true;
    }
    return false;
}

static void the_profile_from_a_file_has_the_bytes_of_the_one_that_is_built_in(void **state) {
    (void)state;
    char *text = read_whole(US_SOURCE_DIR "/scenes/ros2-profile.xml");
    write_without("from-file.xml", text, NULL, NULL);
    write_without("built-in.xml", text, "<topic name=\"joint_states\"", "</interface>");
    us_recording *a = record("from-file.xml", "from-file.mcap"), *b = record("built-in.xml", "built-in.mcap");
    static const struct {
        const char *topic;
        int n;
    } topics[] = {{"/k10/joint_states", 101}, {"/k10/odom", 101}, {"/k10/imu/data", 201}};
    for (int k = 0; k < 3; k++) {
        const int32_t ca = channel_of(a, topics[k].topic), cb = channel_of(b, topics[k].topic);
        const us_channel_info ia = us_recording_get_channel(a, ca), ib = us_recording_get_channel(b, cb);
        assert_string_equal(ia.type, ib.type);
        assert_string_equal(ia.schema, ib.schema);
        assert_int_equal(us_recording_rewind(a), US_OK);
        assert_int_equal(us_recording_rewind(b), US_OK);
        us_recorded ma, mb;
        int n = 0, n_other = 0;
        static uint8_t before[4096];
        size_t n_before = 0;
        while (next_of(a, ca, &ma)) {
            assert_true(next_of(b, cb, &mb));
            assert_int_equal(ma.log_time, mb.log_time);
            assert_int_equal(ma.publish_time, mb.publish_time);
            assert_int_equal(ma.length, mb.length);
            assert_memory_equal(ma.bytes, mb.bytes, mb.length);
            n_other += n == 0 || ma.length != n_before || memcmp(before, ma.bytes, n_before) != 0;
            assert_true(ma.length <= sizeof before);
            memcpy(before, ma.bytes, ma.length);
            n_before = ma.length;
            n++;
        }
        assert_false(next_of(b, cb, &mb));
        assert_int_equal(n, topics[k].n);
        assert_int_equal(n_other, n);  // it drives: no two are the same
    }
    us_recording_close(a);
    us_recording_close(b);
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_profile_from_a_file_has_the_bytes_of_the_one_that_is_built_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
