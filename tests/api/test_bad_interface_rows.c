// Rows of an <interface> that cannot be: each is refused with its own error, at its own line, with a remedy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/model.h"

static const char types[] =
    "module m {\n"
    "  const long GO = 1;\n"
    "  struct V { double x, y, z; };\n"
    "  union U switch (long) { case 0: double a; case 1: string b; };\n"
    "  struct P { short xyz[3]; sequence<short> tail; };\n"
    "  struct S {\n"
    "    string<8> name; double x; double two[2]; sequence<double, 2> few; double many[99];\n"
    "    V v; V list[2]; U u; sequence<P, 100> points; P fixed[9]; sequence<octet> bytes;\n"
    "    double q[4]; double r[9];\n"
    "  };\n"
    "};\n";

enum { LINE = 6 };  // of the row

typedef struct bad_row {
    const char *row;
    us_status status;
    const char *message;  // a part of it
} bad_row;

#define SET(attributes) "<publish topic='t' type='m::S'><set " attributes "/></publish>"
#define TWO(a, b) "<publish topic='t' type='m::S'><set " a "/><set " b "/></publish>"
#define DO(what, rows) \
    "<subscribe topic='c' type='m::S'><command do='" what "'>" rows "</command></subscribe>"
#define ANSWER(attributes)                                                               \
    "<subscribe topic='c' type='m::S'><command do='stop'/><answer on='taken' topic='a' " \
    "type='m::S'><set " attributes "/></answer></subscribe>"

static const bad_row bad_rows[] = {
    // Topics.
    {"<publish topic='t' type='m::T'/>", US_ERR_NAME, "the interface has no type \"m::T\""},
    {"<publish topic='t' type='m::U'/>", US_ERR_NAME, "the interface has no type \"m::U\""},
    {"<publish topic='t t' type='m::S'/>", US_ERR_NAME, "is no name of a topic"},
    {"<publish topic='t' type='m::S' rate='-1'/>", US_ERR_VALUE, "rate"},
    {"<publish topic='t' type='m::S' depth='-1'/>", US_ERR_VALUE, "-1 samples cannot be kept"},
    // What a member is set to.
    {SET("member='x'"), US_ERR_SCHEMA, "it says not what the value is"},
    {SET("member='x' number='1' value='time'"), US_ERR_SCHEMA, "it says twice what the value is"},
    {SET("member='x' number='GONE'"), US_ERR_VALUE, "GONE"},
    {SET("member='y' number='1'"), US_ERR_NAME, "\"m::S\" has no member \"y\""},
    {SET("member='x.y' number='1'"), US_ERR_NAME, "nothing can follow \"x\""},
    {SET("member='two[2]' number='1'"), US_ERR_VALUE, "the index of \"two\" is none"},
    {SET("member='x[0]' number='1'"), US_ERR_VALUE, "the index of \"x\" is none"},
    {SET("member='two' number='1'"), US_ERR_VALUE, "a constant is one value"},
    {SET("member='v' number='1'"), US_ERR_VALUE, "it is a struct"},
    {SET("member='name' number='1'"), US_ERR_VALUE, "it is a string, and the value a number"},
    {SET("member='x' text='a'"), US_ERR_VALUE, "it is a number, and the value a text"},
    {SET("member='x' value='jont.position'"), US_ERR_NAME, "jont.position"},
    {SET("member='x' value='time' scale='0'"), US_ERR_VALUE, "scale: with 0 nothing is left"},
    {SET("member='x' value='time' unit='parsec'"), US_ERR_VALUE, "unit: \"parsec\" is none"},
    {SET("member='x' value='refusal'"), US_ERR_NAME, "only a refusal has a reason"},
    {SET("member='x' copy='x'"), US_ERR_NAME, "only answers copy"},
    {SET("member='two' value='odom.position'"), US_ERR_VALUE, "the value has 3 numbers"},
    {SET("member='q' value='imu.quaternion' sensor='mast'"), US_ERR_NAME, "no sensor \"mast\""},
    {SET("member='x' value='battery.charge'"), US_ERR_NAME, "no sensor \"battery\""},
    {TWO("member='x' number='1'", "member='x' number='2'"), US_ERR_NAME, "\"x\" is set twice"},
    {TWO("member='u.a' number='1'", "member='u.b' text='2'"), US_ERR_VALUE, "two cases of a union"},
    // Joints and frames.
    {SET("member='many' value='joint.position' joints='front_left nobody'"), US_ERR_NAME,
     "no joint \"nobody\""},
    {SET("member='two' value='joint.position'"), US_ERR_VALUE, "it has 2 places"},
    {SET("member='few' value='joint.position'"), US_ERR_VALUE, "it has 2 places"},
    {SET("member='x' value='joint.position'"), US_ERR_VALUE, "needs as many places"},
    {SET("member='list[].x' value='joint.position'"), US_ERR_VALUE, "the index of \"list\" is none"},
    {SET("member='r' value='frame.matrix'"), US_ERR_VALUE, "it has one place for all frames"},
    // Axes.
    {SET("member='v' value='odom.position' axes='x y'"), US_ERR_VALUE, "are no right-handed axes"},
    {SET("member='v' value='odom.position' axes='x y -z'"), US_ERR_VALUE, "are no right-handed axes"},
    {SET("member='v' value='odom.position' axes='x x z'"), US_ERR_VALUE, "are no right-handed axes"},
    {SET("member='v' value='odom.position' axes='x y w'"), US_ERR_VALUE, "are none"},
    // Lists of a lidar.
    {SET("member='points[].xyz' value='point.position' sensor='lidar2'"), US_ERR_NAME,
     "no sensor \"lidar2\""},
    {SET("member='points[].xyz' value='point.position' sensor='imu'"), US_ERR_NAME, "no sensor \"imu\""},
    {SET("member='x' value='point.range'"), US_ERR_VALUE, "needs as many places"},
    {SET("member='points[].tail[]' value='point.range'"), US_ERR_VALUE, "needs as many places"},
    {SET("member='points' value='point.range'"), US_ERR_VALUE, "it is a struct"},
    {SET("member='points[].xyz[0]' value='point.position'"), US_ERR_VALUE, "the value has 3 numbers"},
    {SET("member='fixed[].xyz' value='point.position'"), US_ERR_VALUE, "how many points come back differs"},
    {SET("member='many' value='shot.range'"), US_ERR_VALUE, "it has 99 places, and the lidar 512"},
    {SET("member='two' value='row.length'"), US_ERR_VALUE, "it has 2 places, and the lidar 4"},
    {TWO("member='points[].xyz' value='point.position'", "member='points[0].xyz[0]' number='1'"),
     US_ERR_VALUE, "an element beside a list"},
    {TWO("member='bytes' value='point.ring'", "member='bytes[0]' number='1'"), US_ERR_VALUE,
     "an element beside a list"},
    {TWO("member='points[].xyz[0]' value='point.range'", "member='points[].xyz[1]' value='row.length'"),
     US_ERR_VALUE, "are two lists in one"},
    {TWO("member='points[].xyz[0]' value='point.range'", "member='points[].xyz[1]' number='1'"), US_ERR_VALUE,
     "the index of \"points\" is none"},
    {TWO("member='bytes' value='point.ring'", "member='points[].xyz' value='point.position' sensor='front'"),
     US_ERR_VALUE, "a topic has one lidar"},
    {"<publish topic='t' type='m::S' rate='0'><set member='bytes' value='point.ring'/></publish>",
     US_ERR_NAME, "a lidar's turns come again"},
    {ANSWER("member='bytes' value='point.ring'"), US_ERR_NAME, "a lidar's turns come again"},
    // Answers.
    {ANSWER("member='x' copy='nothing'"), US_ERR_NAME, "has no member \"nothing\""},
    {ANSWER("member='x' copy='two'"), US_ERR_VALUE, "it is more than one value"},
    {ANSWER("member='x' value='refusal'"), US_ERR_NAME, "only a refusal has a reason"},
    // Commands.
    {DO("joints", "<get value='joint.angle' member='many'/>"), US_ERR_NAME, "joint.angle"},
    {DO("joints", "<get value='joint.position' member='many' joints='rear_left'/>"), US_ERR_NAME,
     "\"rear_left\" has no drive"},
    {DO("velocity", "<get value='speed' member='x'/>"), US_ERR_NAME, "speed"},
    {DO("velocity", "<get value='x' member='two'/>"), US_ERR_VALUE, "it is more than one number"},
    {DO("velocity", "<get value='x' member='name'/>"), US_ERR_VALUE, "it is a string"},
    {DO("velocity", "<get value='x'/>"), US_ERR_SCHEMA, "it says not what the value is"},
    {DO("stop", "<get value='x' member='x'/>"), US_ERR_NAME, "\"stop\" has no values"},
    {DO("stop", "<when member='two' is='1'/>"), US_ERR_VALUE, "it is more than one value"},
    {DO("stop", "<when member='x' is='gone'/>"), US_ERR_VALUE, "it is a number, and the value a text"},
    {DO("fly", ""), US_ERR_VALUE, "invalid value \"fly\""},
    // Whom samples are for.
    {"<subscribe topic='c' type='m::S'><when member='who' is='1'/><command do='stop'/></subscribe>",
     US_ERR_NAME, "has no member \"who\""},
    {"<subscribe topic='c' type='m::S'><when member='two' is='1'/><command do='stop'/></subscribe>",
     US_ERR_VALUE, "it is more than one value"},
    {"<subscribe topic='c' type='m::S'><when member='x' is='gone'/><command do='stop'/></subscribe>",
     US_ERR_VALUE, "it is a number, and the value a text"},
};
enum { N_ROW = sizeof bad_rows / sizeof *bad_rows };

static bool is_right(const bad_row *r) {
    char text[4096];
    us_error err = {0};
    us_model *model = NULL;
    us_load_def def = us_load_def_default();
    const int n =
        snprintf(text, sizeof text,
                 "<scene name='s' version='1'><world step='1 ms'/>\n<robot name='cart' file='" US_SOURCE_DIR
                 "/models/cart.urdf' base='floating'>\n<drive joint='front_left' kd='10'/>\n"
                 "<sensor type='lidar' name='lidar' link='base' elevations='-3 -2 -1 0 deg' columns='128' "
                 "max-range='9' rate='5'/>"
                 "<sensor type='lidar' name='front' link='base' elevations='0' columns='128' max-range='9' "
                 "rate='5'/>\n"
                 "<network><interface file='rows.idl'>\n%s\n</interface></network></robot></scene>\n",
                 r->row);
    us_spec *spec = NULL;
    us_status status = us_spec_load_text(text, (size_t)n, "rows.xml", &def, &spec, &err);
    if (!status) status = us_model_compile(spec, NULL, &model, &err);
    us_model_destroy(model);
    us_spec_destroy(spec);
    if (status == r->status && err.line == LINE && strstr(err.message, r->message) && err.remedy[0] != 0 &&
        strstr(err.file, "rows.xml"))
        return true;
    print_error("%s\n  %s, %s, line %d: %s (%s)\n", r->row, us_status_text(status), err.file, (int)err.line,
                err.message, err.remedy);
    return false;
}

static void every_row_that_cannot_be_is_refused_where_it_stands(void **state) {
    (void)state;
    FILE *f = fopen("rows.idl", "w");
    assert_non_null(f);
    fputs(types, f);
    assert_int_equal(fclose(f), 0);
    int n_wrong = 0;
    for (int i = 0; i < N_ROW; i++)
        n_wrong += !is_right(&bad_rows[i]);
    assert_int_equal(n_wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_that_cannot_be_is_refused_where_it_stands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
