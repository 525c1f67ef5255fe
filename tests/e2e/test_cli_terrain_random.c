// understudy terrain random: the site that it leaves, and what it says about requests that cannot be met.
#include <math.h>
#include <sys/stat.h>

#include "test_cli_support.h"
#include "understudy/terrain.h"

static const char *site_path(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s-%ld", name, (long)getpid());
    return path;
}

static void remove_site(const char *path) {
    // Sites of tests are a few tiles.
    char line[512];
    snprintf(line, sizeof line, "rm -rf '%s'", path);
    assert_int_equal(system(line), 0);
}

static uint64_t hash_of(const char *path, us_site_info *out_info) {
    us_site *site = NULL;
    us_error err = {0};
    if (us_site_open(path, NULL, &site, &err) != US_OK) fail_msg("%s: %s", err.file, err.message);
    us_site_info info = us_site_get_info(site);
    us_site_close(site);
    if (out_info) *out_info = info;
    return info.hash;
}

static void a_site_has_the_layers_and_heights_asked_for(void **state) {
    (void)state;
    const char *path = site_path("layers");
    outcome a = run("terrain random -o %s --size 300,200 --spacing 0.5 --covariance exponential --length 5 "
                    "--variance 4 --mean 50 --seed 7 "
                    "--soil cohesion=800,10000,10 --soil friction=0.1,0.01,10",
                    path);
    assert_code(a, 0);
    assert_has(a.out, "600 x 400");
    assert_has(a.out, "asked for: mean 50, variance 4, exponential, length 5 m");
    assert_has(a.out, "were below 0 and are 0");
    us_site *site = NULL;
    assert_int_equal(us_site_open(path, NULL, &site, NULL), US_OK);
    us_site_info info = us_site_get_info(site);
    assert_true(info.n_layer == 3 && info.layer[0].n_x == 600 && info.layer[0].n_y == 400 &&
                info.layer[0].dx == 0.5 && info.origin.z == 50);
    assert_string_equal(info.layer[1].name, "soil.cohesion");
    assert_true(us_site_find_layer(site, "soil.friction") == 2 && info.layer[2].low == 0);
    // The samples of all tiles against the moments that were asked for.
    static float tile[US_SITE_TILE * US_SITE_TILE];
    const double want[2][2] = {{0, 4}, {800, 10000}};
    for (int32_t layer = 0; layer < 2; layer++) {
        double sum = 0, square = 0;
        int64_t n = 0;
        for (int32_t v = 0; v < 2; v++) {
            for (int32_t u = 0; u < 3; u++) {
                int32_t n_x, n_y;
                assert_true(us_site_tile_size(site, layer, 0, u, v, &n_x, &n_y));
                assert_int_equal(us_site_read(site, layer, 0, u, v, tile, NULL), US_OK);
                for (int32_t i = 0; i < n_x * n_y; i++) {
                    sum += tile[i];
                    square += (double)tile[i] * tile[i];
                }
                n += (int64_t)n_x * n_y;
            }
        }
        double mean = sum / (double)n, variance = square / (double)n - mean * mean;
        // An exponential of length L has one independent value for each 2 pi L^2 or so: 380 of the heights,
        // 95 of the soil, which bound the errors.
        double independent = 60000 / (2 * M_PI * (layer ? 100 : 25));
        assert_near(mean, want[layer][0], 4 * sqrt(want[layer][1] / independent));
        assert_near(variance, want[layer][1], want[layer][1] * 4 * sqrt(2 / independent));
    }
    us_site_close(site);
    remove_site(path);
}

static void the_same_seed_makes_the_same_site_for_any_number_of_threads(void **state) {
    (void)state;
    uint64_t hash[4];
    static const char *const options[] = {"--seed 7", "--seed 7 --threads 3", "--seed 8",
                                          "--seed 7 --method patch"};
    for (int i = 0; i < 4; i++) {
        const char *path = site_path("same");
        assert_code(run("terrain random -o %s --size 300 --length 30 --craters 2000 --rocks 0.2,2,6 %s", path,
                        options[i]),
                    0);
        hash[i] = hash_of(path, NULL);
        remove_site(path);
    }
    assert_true(hash[0] == hash[1] && hash[0] != hash[2] && hash[0] != hash[3]);
}

static void craters_and_rocks_change_the_heights(void **state) {
    (void)state;
    us_site_info plain, with;
    const char *path = site_path("plain");
    assert_code(run("terrain random -o %s --size 256 --variance 0.01 --length 50 --seed 3", path), 0);
    hash_of(path, &plain);
    remove_site(path);
    path = site_path("moon");
    outcome a = run("terrain random -o %s --size 256 --variance 0.01 --length 50 --seed 3 --craters "
                    "3000,10,60 --rocks 0.3,2,6",
                    path);
    assert_code(a, 0);
    assert_has(a.out, "3000 per km^2 of 10 to 60 m");
    hash_of(path, &with);
    remove_site(path);
    // Some 200 craters of 10 m or more: a fresh one is 1.6 m deep at least. Rocks are 0.8 m high at least.
    assert_true(with.layer[0].low < plain.layer[0].low - 1 && with.layer[0].high > plain.layer[0].high + 0.5);
    const char *rocks = strstr(a.out, "rocks");
    assert_true(rocks && atoi(rocks + 5) > 10);
}

static void the_report_is_there_as_json(void **state) {
    (void)state;
    const char *path = site_path("json");
    outcome a = run("terrain random -o %s --size 100 --variance 9 --covariance gaussian --length 5 --seed 2 "
                    "--json --soil n=1,0.01,10",
                    path);
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    assert_true(number_of(json, "width") == 100 && number_of(json, "seed") == 2);
    const cJSON *layers = member(json, "layers");
    assert_int_equal(cJSON_GetArraySize(layers), 2);
    // 10000 m^2 of bumps of pi 25 / 2 m^2 each are some 250: the variance is within a quarter.
    assert_near(number_of(cJSON_GetArrayItem(layers, 0), "variance"), 9, 9 * 4 * sqrt(2.0 / 250));
    cJSON_Delete(json);
    remove_site(path);
}

static void tables_give_the_covariance(void **state) {
    (void)state;
    const char *path = site_path("table");
    write_text("good.txt", "# distance covariance\n0 4\n5 2\n10 1\n15 0.5\n20 0.2\n25 0\n");
    outcome a = run("terrain random -o %s --size 200 --table good.txt", path);
    assert_code(a, 0);
    assert_has(a.out, "variance 4, table");
    remove_site(path);
    // Points at any distances.
    write_text("uneven.txt", "0 4\n0.5 3.8\n2 3\n7 1.2\n20 0.1\n21 0\n");
    a = run("terrain random -o %s --size 200 --table uneven.txt", path);
    assert_code(a, 0);
    assert_has(a.out, "variance 4, table");
    remove_site(path);
    // A tent is no covariance of any ground: it is said how far from it the ground is.
    write_text("tent.txt", "0 1\n100 0\n");
    a = run("terrain random -o %s --size 1000 --spacing 5 --table tent.txt --variance 2", path);
    assert_code(a, 0);
    assert_has(a.err, "no ground has such a covariance");
    remove_site(path);
    static const struct {
        const char *text, *says;
    } bad[] = {{"0 1\n1 2\n", "greater than 1 at 0"},
               {"1 1\n2 0.5\n", "line 1"},
               {"0 1\n2 0.5\n2 0.2\n", "line 3"},
               {"0 1\n3 0.5\n2 0.2\n", "line 3"},
               {"0 -1\n1 -2\n", "greater than"},
               {"", "0 values"},
               {"0 1\nabc\n", "line 2"},
               {"0 1\n1 0.5 7\n", "line 2"},
               {"0 0\n1 0\n", "2 values, the first 0"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_text("bad.txt", bad[i].text);
        a = run("terrain random -o %s --size 100 --table bad.txt", path);
        assert_code(a, 2);
        assert_has(a.err, bad[i].says);
        assert_has(a.err, "bad.txt");
    }
}

// By expressions: heights without a deviation are the means themselves.
static void every_place_has_its_own_mean_and_deviation(void **state) {
    (void)state;
    const char *path = site_path("varied");
    outcome a = run("terrain random -o %s --size 201 --mean 30+0.1*x --deviation 0 --json "
                    "--soil n=1,0.01,10 --soil-mean n=2+0.005*y --soil-deviation n=0",
                    path);
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    const cJSON *layers = member(json, "layers");
    assert_near(number_of(cJSON_GetArrayItem(layers, 0), "low"), 20, 1e-9);
    assert_near(number_of(cJSON_GetArrayItem(layers, 0), "high"), 40, 1e-9);
    assert_near(number_of(cJSON_GetArrayItem(layers, 1), "low"), 1.5, 1e-9);
    assert_near(number_of(cJSON_GetArrayItem(layers, 1), "high"), 2.5, 1e-9);
    cJSON_Delete(json);
    remove_site(path);
    // The east half is rough, the west half level.
    a = run("terrain random -o %s --size 400 --deviation 3*min(1,max(0,100*x)) --length 5 --covariance "
            "exponential",
            path);
    assert_code(a, 0);
    assert_has(a.out, "deviation of each place");
    // Of 200 x 400 m some 500 independent places: half of 9 within a quarter.
    const char *variance = strstr(a.out, "variance ");
    assert_non_null(variance);
    assert_near(strtod(variance + 9, NULL), 4.5, 1.2);
    remove_site(path);
}

static void requests_that_cannot_be_met_are_refused_before_anything_is_written(void **state) {
    (void)state;
    static const struct {
        const char *options, *says;
    } rows[] = {
        {"", "--size is missing"},
        {"--size 0", "0 samples"},
        {"--size 1e9", "samples"},
        {"--size abc", "no size"},
        {"--size 100 --spacing 0", "--spacing"},
        {"--size 100 --variance -1", "variance -1"},
        {"--size 100 --covariance cheese", "cheese"},
        {"--size 100 --covariance gausian", "did you mean gaussian"},
        {"--size 100 --covariance table", "--table"},
        {"--size 100 --length 0", "length"},
        {"--size 100 --smoothness 3", "smoothness"},
        {"--size 100 --method magic", "magic"},
        {"--size 60000 --method embed", "60000 x 60000"},
        {"--size 100 --table nothing.txt", "nothing.txt"},
        {"--size 100 --craters -5", "--craters"},
        {"--size 100 --craters 1e7", "leave no ground"},
        {"--size 100 --craters 100,50,20", "50 to 20"},
        {"--size 100 --rocks 0.9", "cover 0.9"},
        {"--size 100 --rocks 0.1,0.5", "do not show"},
        {"--size 100 --soil cohesion=1,2", "--soil"},
        {"--size 100 --soil cohesion=1,-2,3", "variance -2"},
        {"--size 100 --soil a=1,1,1 --soil a=1,1,1", "twice"},
        {"--size 100 --soil a=1,1,1 --soil b=1,1,1 --soil c=1,1,1 --soil d=1,1,1 --soil e=1,1,1 --soil "
         "f=1,1,1 --soil g=1,1,1 --soil h=1,1,1",
         "at most 7"},
        {"--size 100 --threads 0", "--threads"},
        {"--size 100 --colour red", "--colour"},
        {"--size 100 --variance 1 --deviation 1", "--variance and --deviation"},
        {"--size 100 --mean 3*z", "z"},
        {"--size 100 --mean nothing.tif", "nothing.tif"},
        {"--size 100 --deviation x", "is -49.5 at x = -49.5 m"},
        {"--size 100 --soil-mean a=3", "--soil-mean"},
        {"--size 100 --soil b=1,1,1 --soil-deviation a=3", "--soil-deviation"},
    };
    const char *path = site_path("bad");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        outcome a = run("terrain random -o %s %s", path, rows[i].options);
        if (a.code != 2 || !strstr(a.err, rows[i].says))
            fail_msg("%s: %d\n%s", rows[i].options, a.code, a.err);
        assert_has(a.err, "remedy");
        assert_true(access(path, F_OK) != 0);
    }
    assert_has(run("terrain random --size 100").err, "-o DIR");
}

static void a_directory_that_is_not_empty_is_left_alone(void **state) {
    (void)state;
    const char *path = site_path("full");
    char file[300];
    mkdir(path, 0777);
    snprintf(file, sizeof file, "%s/diary.txt", path);
    write_text(file, "dear diary");
    outcome a = run("terrain random -o %s --size 100", path);
    assert_code(a, 2);
    assert_has(a.err, path);
    char *text = read_text(file);
    assert_string_equal(text, "dear diary");
    free(text);
    remove_site(path);
    outcome b = run("terrain random -o /proc/nowhere/site --size 100");
    assert_code(b, 4);
    assert_has(b.err, "/proc/nowhere/site");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_site_has_the_layers_and_heights_asked_for),
        cmocka_unit_test(the_same_seed_makes_the_same_site_for_any_number_of_threads),
        cmocka_unit_test(craters_and_rocks_change_the_heights),
        cmocka_unit_test(the_report_is_there_as_json),
        cmocka_unit_test(tables_give_the_covariance),
        cmocka_unit_test(every_place_has_its_own_mean_and_deviation),
        cmocka_unit_test(requests_that_cannot_be_met_are_refused_before_anything_is_written),
        cmocka_unit_test(a_directory_that_is_not_empty_is_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
