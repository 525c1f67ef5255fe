// understudy terrain: real rasters of the Earth, the Moon and Mars against what gdalinfo says of them, and
// what is said about bad ones.
#include <math.h>

#include "test_cli_support.h"

// What gdalinfo said of the files, for where it is not installed.
typedef struct facts {
    const char *file, *options, *reference;
    int n_x, n_y;
    double gt[6];
    double low, high;
    double metres;  // of a unit of height that --unit in the options says
} facts;

static const facts rows[] = {
    {"mmgis_missionDEM.tif",
     "",
     "Mars2000 Equidistant Cylindrical clon0",
     348,
     337,
     {8142406, 1, 0, -276455, 0, -1},
     -4472.67,
     -4437.883,
     1},
    {"dem_moon.tif",
     "",
     "Moon2000_npole",
     33,
     33,
     {-53750, 2.42660984848485, 0, -51050, 0, -2.42660984848485},
     -212.296,
     -205.44,
     1},
    {"volcano.tif",
     "--unit ft",
     "NAD27 / UTM zone 10N",
     129,
     129,
     {557815, 75.8914728682171, 0, 5121985, 0, -108.527131782946},
     0,
     8340,
     0.3048},
    {"rasterio_RGB.byte.tif",
     "--band 2 --fill",
     "WGS 84 / UTM zone 18N",
     791,
     718,
     {101985, 300.037926675095, 0, 2826915, 0, -300.041782729805},
     1,
     255,
     1},
};

// The same from gdalinfo itself, when it is there. Statistics of a band are of what is not nodata, as ours
// are.
static bool ask_gdalinfo(const char *path, int band, facts *f) {
    char command[1400], *text = NULL;
    // Without PAM it writes nothing beside the file.
    snprintf(command, sizeof command,
             "GDAL_PAM_ENABLED=NO gdalinfo -json -mm '%s' > gdalinfo.json 2> gdalinfo.err", path);
    if (system(command) != 0 || !(text = read_text("gdalinfo.json"))) return false;
    cJSON *json = parse_json(text);
    f->n_x = (int)number_at(member(json, "size"), 0);
    f->n_y = (int)number_at(member(json, "size"), 1);
    for (int i = 0; i < 6; i++)
        f->gt[i] = number_at(member(json, "geoTransform"), i);
    const cJSON *about = cJSON_GetArrayItem(member(json, "bands"), band - 1);
    f->low = number_of(about, "computedMin");
    f->high = number_of(about, "computedMax");
    cJSON_Delete(json);
    free(text);
    return true;
}

static void rasters_of_three_worlds_are_imported_as_gdalinfo_says_they_are(void **state) {
    (void)state;
    bool has_asked = false;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        facts f = rows[k];
        char name[128], path[1024];
        snprintf(name, sizeof name, "data/terrain/%s", f.file);
        const char *found = shared_file(name);
        if (!found) continue;
        snprintf(path, sizeof path, "%s", found);
        has_asked |= ask_gdalinfo(path, strstr(f.options, "--band") ? 2 : 1, &f);
        assert_int_equal(system("rm -rf site"), 0);
        assert_code(run("terrain import %s %s -o site", path, f.options), 0);
        outcome a = run("terrain info site --json");
        assert_code(a, 0);
        cJSON *json = parse_json(a.out);
        assert_string_equal(member(json, "kind")->valuestring, "site");
        assert_string_equal(member(json, "reference")->valuestring, f.reference);
        assert_int_equal((int)number_of(json, "width"), f.n_x);
        assert_int_equal((int)number_of(json, "height"), f.n_y);
        // Decimals: gdalinfo prints 15 digits.
        assert_near(number_at(member(json, "spacing"), 0), f.gt[1], 1e-11);
        assert_near(number_at(member(json, "spacing"), 1), -f.gt[5], 1e-11);
        assert_near(number_at(member(json, "origin"), 0), f.gt[0] + 0.5 * f.n_x * f.gt[1], 1e-8);
        assert_near(number_at(member(json, "origin"), 1), f.gt[3] + 0.5 * f.n_y * f.gt[5], 1e-8);
        // gdalinfo prints three decimals of extremes; a site rounds heights of 1271 m about its origin to
        // 6e-5 m.
        assert_near(number_of(json, "low"), f.low * f.metres, 6e-4);
        assert_near(number_of(json, "high"), f.high * f.metres, 6e-4);
        assert_true(fabs(number_at(member(json, "origin"), 2) - 0.5 * (f.low + f.high) * f.metres) <= 0.501);
        cJSON_Delete(json);
        // The file, with the same options, is the same.
        outcome b =
            run("terrain info %s %s --json", path, strstr(f.options, "--band") ? "--band 2" : f.options);
        assert_code(b, 0);
        json = parse_json(b.out);
        assert_string_equal(member(json, "kind")->valuestring, "raster");
        assert_int_equal((int)number_of(json, "width"), f.n_x);
        assert_near(number_of(json, "high"), f.high * f.metres, 6e-4);
        assert_true(cJSON_IsFalse(member(json, "resampled")));
        cJSON_Delete(json);
    }
    if (!has_asked)
        print_message(
            "skipped: gdalinfo or the rasters are not there; what there is was compared with constants\n");
}

static void a_photograph_is_no_ground_until_a_band_is_named(void **state) {
    (void)state;
    const char *path = shared_file("data/terrain/rasterio_RGB.byte.tif");
    if (!path) skip();
    assert_int_equal(system("rm -rf site"), 0);
    outcome a = run("terrain import %s -o site", path);
    assert_code(a, 2);
    assert_has(a.err, "3 bands: Red, Green, Blue");
    assert_has(a.err, "--ortho");
    outcome b = run("terrain import %s --band 1 -o site", path);
    assert_code(b, 2);
    assert_has(b.err, "185162 of its 567938 samples");
    assert_has(b.err, "--fill");
    outcome c = run("terrain import %s --band 1 --fill --ortho %s -o site", path, path);
    assert_code(c, 0);
    assert_has(c.err, "heights are band 1 of 3 (Red, Byte)");
    assert_has(c.out, "colour");
    outcome d = run("terrain info site");
    assert_code(d, 0);
    assert_has(d.out, "185162, filled");
    assert_string_equal(d.err, "");
}

static void a_small_raster_is_the_ground_of_a_scene(void **state) {
    (void)state;
    const char *path = shared_file("data/terrain/mmgis_missionDEM.tif");
    if (!path) skip();
    char scene[2048];
    snprintf(scene, sizeof scene,
             "<scene name=\"mars\" version=\"1\"><world><shape name=\"ground\" type=\"height-field\" "
             "file=\"%s\"/></world></scene>\n",
             path);
    write_text("mars.xml", scene);
    outcome a = run("check mars.xml");
    assert_code(a, 0);
    assert_has(a.out, "height-field 348 x 337 samples, 1 x 1 m apart");
    snprintf(scene, sizeof scene,
             "<scene name=\"mars\" version=\"1\"><world><shape name=\"ground\" type=\"height-field\" "
             "nx=\"3\" ny=\"3\" dx=\"1\" dy=\"1\" "
             "file=\"%s\"/></world></scene>\n",
             path);
    write_text("mars.xml", scene);
    outcome b = run("check mars.xml");
    assert_code(b, 2);
    assert_has(b.err, "mars.xml:1");
    assert_has(b.err, "nx: a GeoTIFF says itself");
    write_text("words.tif", "these are words\n");
    write_text("mars.xml", "<scene name=\"mars\" version=\"1\"><world>\n<shape type=\"height-field\" "
                           "file=\"words.tif\"/></world></scene>\n");
    outcome c = run("check mars.xml");
    assert_code(c, 2);
    assert_has(c.err, "mars.xml:2");
    assert_has(c.err, "words.tif");
    // A VRT is no GeoTIFF, whatever its name: it might lead anywhere.
    write_text("words.tif",
               "<VRTDataset rasterXSize=\"4\" rasterYSize=\"4\"><GeoTransform>0,1,0,0,0,-1</GeoTransform>"
               "<VRTRasterBand dataType=\"Byte\" band=\"1\"/></VRTDataset>\n");
    outcome d = run("check mars.xml");
    assert_code(d, 2);
    assert_has(d.err, "cannot be opened as a raster");
    write_text("mars.xml", "<scene name=\"mars\" version=\"1\"><world>\n<shape type=\"height-field\" "
                           "file=\"/vsicurl/http://localhost/x.tif\"/></world></scene>\n");
    outcome e = run("check mars.xml");
    assert_code(e, 2);
    assert_has(e.err, "does not exist");
}

static void rasters_are_files_and_lead_nowhere(void **state) {
    (void)state;
    write_text("secret.asc", "ncols 3\nnrows 3\nxllcorner 0\nyllcorner 0\ncellsize 1\n1 2 3\n4 5 6\n7 8 9\n");
    assert_code(run("terrain info secret.asc --metric"), 0);
    static const char vrt[] =
        "<VRTDataset rasterXSize=\"3\" rasterYSize=\"3\"><GeoTransform>0,1,0,0,0,-1</GeoTransform>"
        "<VRTRasterBand dataType=\"Float32\" band=\"1\"><SimpleSource><SourceFilename relativeToVRT=\"1\">"
        "secret.asc</SourceFilename><SourceBand>1</SourceBand></SimpleSource></VRTRasterBand></VRTDataset>\n";
    write_text("lead.tif", vrt);
    write_text("lead.vrt", vrt);
    static const char *const refused[] = {"lead.tif",
                                          "lead.vrt",
                                          "/vsicurl/http://127.0.0.1:9/x.tif",
                                          "/vsistdin/",
                                          "/vsigzip/secret.asc",
                                          "GTIFF_DIR:1:secret.asc",
                                          "AAIGRID:secret.asc",
                                          "/dev/zero"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        outcome a = run("terrain import %s --metric -o led", refused[i]);
        assert_int_equal(a.code, 2);
        assert_has(a.err, refused[i]);
        assert_has(a.err, "remedy:");
        assert_int_not_equal(access("led", F_OK), 0);
    }
    // What lies beside a file and stands in for its samples is left alone.
    assert_int_equal(system("rm -rf plain beside secret.asc.*"), 0);
    outcome plain = run("terrain import secret.asc --metric -o plain");
    assert_code(plain, 0);
    char hash[64] = "";
    const char *at = strstr(plain.out, "hash");
    assert_non_null(at);
    snprintf(hash, sizeof hash, "%s", at);  // the texts go with the next run
    write_text("secret.asc.ovr", vrt);
    write_text(
        "secret.asc.aux.xml",
        "<PAMDataset><Metadata domain=\"OVERVIEWS\"><MDI key=\"OVERVIEW_FILE\">lead.vrt</MDI></Metadata>"
        "<PAMRasterBand band=\"1\"><NoDataValue>5</NoDataValue></PAMRasterBand></PAMDataset>\n");
    outcome beside = run("terrain import secret.asc --metric -o beside");
    assert_code(beside, 0);
    assert_has(beside.out, hash);
}

static void what_is_wrong_is_said_once_and_by_us_alone(void **state) {
    (void)state;
    write_text("words.tif", "these are words\n");
    outcome a = run("terrain info words.tif");
    assert_code(a, 2);
    assert_int_equal(strncmp(a.err, "error: words.tif: it cannot be opened as a raster", 49), 0);
    // One error of two lines: GDAL prints nothing beside it.
    int n_line = 0;
    for (const char *s = a.err; *s; s++)
        n_line += *s == '\n';
    assert_int_equal(n_line, 2);
    assert_string_equal(a.out, "");
    outcome b = run("terrain import words.tif");
    assert_code(b, 2);
    assert_has(b.err, "-o DIR");
    outcome c = run("terrain imprt words.tif");
    assert_code(c, 2);
    assert_has(c.err, "understudy terrain import");
    assert_code(run("terrain"), 2);
    outcome d = run("terrain import words.tif -o site --unti ft");
    assert_code(d, 2);
    assert_has(d.err, "--unit");
    outcome e = run("terrain info .");
    assert_code(e, 2);
    assert_has(e.err, "site.json");
}

// A ball dropped into sand leaves a hole, which is in the GeoTIFF and in the site made of it.
static void ruts_are_written_as_a_raster_and_read_again(void **state) {
    (void)state;
    write_text("drop.xml", "<scene name=\"drop\" version=\"1\"><world>\n"
                           "<shape name=\"ground\" type=\"height-field\" nx=\"21\" ny=\"11\" dx=\"0.1\" "
                           "dy=\"0.1\" expression=\"0.05*x + 1\" surface=\"sand\" "
                           "bed=\"2 cm\"/></world>\n"
                           "<material name=\"sand\"><soil/></material>\n"
                           "<object name=\"ball\" xyz=\"0.2 0 1.3\"><link name=\"ball\" "
                           "density=\"7800\"><shape type=\"sphere\" size=\"0.1\"/></link></object>\n"
                           "</scene>\n");
    assert_code(run("run drop.xml --headless --offline --rate max --time 1 --quiet --save-ground hole.tif"),
                0);
    outcome a = run("terrain info hole.tif --band 2 --metric --json");
    assert_code(a, 0);
    cJSON *json = parse_json(a.out);
    // 32-bit numbers: the hole is as deep as the ball has sunk, a centimetre or two; soil came up around it.
    double low = number_of(json, "low"), high = number_of(json, "high");
    assert_true(low < -0.005 && low > -0.1);
    assert_true(high > 1e-4 && high < 0.05);
    cJSON_Delete(json);
    outcome b = run("terrain info hole.tif --band 1 --metric --json");
    assert_code(b, 0);
    json = parse_json(b.out);
    assert_true(number_of(json, "high") > 1.04 && number_of(json, "high") < 1.06);
    cJSON_Delete(json);
    // A run before this one may have left it.
    assert_int_equal(system("rm -rf again"), 0);
    assert_code(run("terrain import hole.tif --band 1 --metric -o again"), 0);
    outcome again = run("terrain info again");
    assert_code(again, 0);
    assert_has(again.out, "101 x 51");
    outcome c = run(
        "run drop.xml --headless --offline --rate max --time 0.01 --quiet --save-ground nowhere/hole.tif");
    assert_code(c, 4);
    assert_has(c.err, "nowhere/hole.tif");
    write_text("flat.xml",
               "<scene name=\"flat\" version=\"1\"><world><shape type=\"plane\"/></world></scene>\n");
    outcome d =
        run("run flat.xml --headless --offline --rate max --time 0.01 --quiet --save-ground hole.tif");
    assert_code(d, 2);
    assert_has(d.err, "the scene has 0 beds of soil");
}

// What a GDAL tool says, as one line; false when it is not installed.
static bool ask(char *out, size_t cap, const char *command) {
    char line[1600], *text = NULL;
    snprintf(line, sizeof line, "GDAL_PAM_ENABLED=NO %s > said.txt 2> said.err", command);
    if (system(line) != 0 || !(text = read_text("said.txt"))) return false;
    snprintf(out, cap, "%s", text);
    free(text);
    return true;
}

static bool value_at(const char *path, int band, double x, double y, double *out) {
    char command[1400], said[100];
    snprintf(command, sizeof command, "gdallocationinfo -valonly -geoloc -b %d '%s' %.9f %.9f", band, path, x,
             y);
    return ask(said, sizeof said, command) && sscanf(said, "%lf", out) == 1;
}

// A ball is dropped onto a sample near the middle of a real raster; GDAL finds its hole there, in the
// reference system of the raster and at its height.
static void a_rut_lies_where_it_is_on_its_world(void **state) {
    (void)state;
    for (size_t k = 0; k < 3; k++) {
        facts f = rows[k];
        char name[128], path[1024], command[1400], scene[2000], first[1200], second[1200];
        snprintf(name, sizeof name, "data/terrain/%s", f.file);
        const char *found = shared_file(name);
        if (!found) continue;
        snprintf(path, sizeof path, "%s", found);
        double x = f.n_x % 2 ? 0 : 0.5 * f.gt[1], y = f.n_y % 2 ? 0 : -0.5 * f.gt[5], high, change = 0,
               now = 0;
        double east = f.gt[0] + 0.5 * f.n_x * f.gt[1] + x, north = f.gt[3] + 0.5 * f.n_y * f.gt[5] + y;
        snprintf(command, sizeof command, "gdalsrsinfo -o proj4 '%s'", path);
        if (!value_at(path, 1, east, north, &high) || !ask(first, sizeof first, command)) {
            printf("    skipped: gdallocationinfo or gdalsrsinfo is not installed\n");
            return;
        }
        high *= f.metres;
        // The last one as a site, of which the part that has changed is written.
        bool is_site = k == 2;
        assert_int_equal(system("rm -rf world"), 0);
        if (is_site) assert_code(run("terrain import %s %s -o world", path, f.options), 0);
        double origin = round(0.5 * f.metres * (f.low + f.high));
        snprintf(scene, sizeof scene,
                 "<scene version=\"1\"><world><shape name=\"ground\" type=\"height-field\" file=\"%s\" "
                 "surface=\"sand\" bed=\"5 cm\" xyz=\"0 0 3\"/>"
                 "</world><material name=\"sand\"><soil/></material><object name=\"ball\" xyz=\"%.6f %.6f "
                 "%.6f\"><link name=\"ball\" density=\"7800\">"
                 "<shape type=\"sphere\" size=\"0.2\"/></link></object></scene>\n",
                 is_site ? "world" : path, x, y, high - origin + 3.25);
        write_text("world.xml", scene);
        outcome a = run("run world.xml --headless --offline --rate max --time 0.3 --save-ground rut.tif %s",
                        is_site ? "" : "--ground-zone -2,-2,2,2");
        assert_code(a, 0);
        assert_has(a.out, "rut.tif");
        assert_true(value_at("rut.tif", 2, east, north, &change) &&
                    value_at("rut.tif", 1, east, north, &now));
        assert_true(ask(second, sizeof second, "gdalsrsinfo -o proj4 rut.tif"));
        assert_string_equal(first, second);
        facts w = {0};
        assert_true(ask_gdalinfo("rut.tif", 2, &w));
        printf("    %s: a hole of %.1f mm at %.2f east, %.2f north, %.3f m; %d x %d columns\n", f.reference,
               -1e3 * change, east, north, now, w.n_x, w.n_y);
        assert_true(change < -0.005 && w.n_x <= 128 && w.n_y <= 128);
        // Columns of 5 cm may lie 3 cm beside the sample, on ground as steep as 45 degrees; heights are
        // 32-bit numbers.
        if (fabs(now - change - high) > 0.03)
            fail_msg("%s: %.4f m in the raster, %.4f m written", f.file, high, now - change);
        // The hole is the deepest place, or nearly: what was written is not somewhere else.
        assert_true(change < 0.5 * w.low);
    }
    outcome b = run("run drop.xml --headless --offline --rate max --time 0.01 --quiet --save-ground hole.tif "
                    "--ground-zone 9,9,10,10");
    assert_code(b, 3);
    assert_has(b.err, "no column of the bed");
    outcome c = run("run drop.xml --headless --offline --rate max --time 0.01 --quiet --ground-zone 0,0,1,1");
    assert_code(c, 2);
    assert_has(c.err, "--save-ground");
}

static void each_part_has_its_help(void **state) {
    (void)state;
    outcome a = run("terrain --help");
    assert_code(a, 0);
    assert_has(a.out, "import");
    assert_has(a.out, "random");
    assert_has(a.out, "info");
    outcome b = run("terrain import --help");
    assert_code(b, 0);
    assert_has(b.out, "Usage: understudy terrain import FILE [FILE...] [OPTIONS]");
    assert_has(b.out, "  -o DIR ");
    assert_has(b.out, "  --ortho FILE ");
    outcome c = run("terrain info --help");
    assert_code(c, 0);
    assert_has(c.out, "--json");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rasters_of_three_worlds_are_imported_as_gdalinfo_says_they_are),
        cmocka_unit_test(a_photograph_is_no_ground_until_a_band_is_named),
        cmocka_unit_test(a_small_raster_is_the_ground_of_a_scene),
        cmocka_unit_test(rasters_are_files_and_lead_nowhere),
        cmocka_unit_test(what_is_wrong_is_said_once_and_by_us_alone),
        cmocka_unit_test(ruts_are_written_as_a_raster_and_read_again),
        cmocka_unit_test(a_rut_lies_where_it_is_on_its_world),
        cmocka_unit_test(each_part_has_its_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
