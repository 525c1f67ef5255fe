// World commands as text: what each says, and why each that says nothing sensible is refused.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text_value.h"
#include "understudy/soil.h"
#include "world/pair_field.h"

static usi_command c;

static void parse(const char *text) {
    us_error err = {0};
    us_status status = usi_command_parse(text, &c, &err);
    if (status) fail_msg("%s: %s; %s", text, err.message, err.remedy);
}

// Refused with this status; message and remedy together have the text.
static void refused(const char *text, us_status status, const char *part) {
    us_error err = {0};
    assert_int_equal(usi_command_parse(text, &c, &err), status);
    char all[1024];
    snprintf(all, sizeof all, "%s; %s", err.message, err.remedy);
    if (!strstr(all, part)) fail_msg("%s: \"%s\" is not in: %s", text, part, all);
    // Every refusal says what to write instead.
    assert_true(err.message[0] != 0);
    assert_true(err.remedy[0] != 0);
}

static void commands_about_time_are_read(void **state) {
    (void)state;
    parse("pause");
    assert_int_equal(c.verb, USI_VERB_PAUSE);
    parse("  resume\t ");
    assert_int_equal(c.verb, USI_VERB_RESUME);
    parse("step");
    assert_true(c.number[0] == 1);
    parse("step 250");
    assert_true(c.number[0] == 250);
    parse("rate real");
    assert_true(c.number[0] == 1);
    parse("rate max");
    assert_true(c.number[0] == 0);
    parse("rate 0.25");
    assert_true(c.number[0] == 0.25);
    parse("reset");
    assert_int_equal(c.verb, USI_VERB_RESET);
    parse("snapshot before_the-climb.2");
    assert_string_equal(c.name, "before_the-climb.2");
    parse("record run.mcap");
    assert_string_equal(c.name, "run.mcap");
    parse("record off");
    assert_null(c.name);
    parse("authority k10 shadow");
    assert_string_equal(c.name, "k10");
    assert_string_equal(c.other, "shadow");
    assert_false(usi_verb_is_world(c.verb));
}

static void commands_about_the_world_are_read(void **state) {
    (void)state;
    parse("pair rubber soil static-friction=0.6 rolling-length=5e-3");
    assert_string_equal(c.name, "rubber");
    assert_string_equal(c.other, "soil");
    assert_int_equal(c.n_value, 2);
    assert_string_equal(usi_pair_key_name(c.value[1].field), "rolling-length");
    assert_true(c.value[1].value == 5e-3);
    assert_null(c.model);
    parse("pair a b friction=0.5");
    assert_int_equal(c.n_value, 2);
    parse("pair a b model=compliant viscous=1");
    assert_int_equal(c.n_value, 1);
    assert_string_equal(c.model, "compliant");
    parse("add capsule pill size=0.1,0 at=1,-2,3 rpy=0,0,1.5 mass=2 surface=rock rgba=1,0,0,0.5 "
          "velocity=0,0,-1");
    assert_int_equal(c.object.kind, USI_OBJECT_CAPSULE);
    assert_true(c.object.size[0] == 0.1 && c.object.size[1] == 0);
    assert_true(c.object.position[1] == -2 && c.object.mass == 2 && c.object.velocity[2] == -1);
    assert_string_equal(c.object.surface, "rock");
    parse("add box crate size=1,1,1");
    assert_true(isnan(c.object.mass) && c.object.density == 1000);
    assert_false(c.object.is_fixed);
    parse("move \"old stone\" 1 -2.5 3e-1");
    assert_string_equal(c.name, "old stone");
    assert_int_equal(c.n_number, 3);
    assert_true(c.number[1] == -2.5);
    parse("move k10 1 2 3 0 0 1.57");
    assert_int_equal(c.n_number, 6);
    parse("lower stone 0.1");
    assert_true(c.number[0] == 0.1);
    parse("joint k10/front_left_steer 0.3 -1");
    assert_int_equal(c.n_number, 2);
    parse("fault k10 motor:front_left_steer=dead");
    assert_string_equal(c.name, "k10");
    assert_string_equal(c.other, "front_left_steer");
    assert_int_equal(c.fault, USI_FAULT_DEAD);
    parse("fault k10 motor:front_left_steer=weak:0.3");
    assert_int_equal(c.fault, USI_FAULT_WEAK);
    assert_true(c.n_number == 1 && c.number[0] == 0.3);
    parse("fault k10 motor:front_left_steer=blocked");
    assert_true(c.fault == USI_FAULT_BLOCKED && c.n_number == 0);
    parse("fault k10 motor:front_left_steer=blocked:5");
    assert_true(c.fault == USI_FAULT_BLOCKED && c.number[0] == 5);
    parse("fault k10 encoder:front_left_drive=jump:-0.5");
    assert_true(c.part == USI_COMPONENT_ENCODER && c.fault == USI_FAULT_JUMP && c.n_number == 1 &&
                c.number[0] == -0.5);
    assert_string_equal(c.other, "front_left_drive");
    parse("fault k10 imu=bias:1,2,3,4,5,6");
    assert_true(c.part == USI_COMPONENT_IMU && c.fault == USI_FAULT_BIAS && c.n_number == 6 &&
                c.number[5] == 6);
    assert_string_equal(c.other, "imu");
    parse("fault k10 imu:mast=stuck");
    assert_true(c.part == USI_COMPONENT_IMU && c.fault == USI_FAULT_STUCK);
    assert_string_equal(c.other, "mast");
    parse("fault k10 power=brownout");
    assert_true(c.part == USI_COMPONENT_POWER && c.fault == USI_FAULT_BROWNOUT && c.n_number == 0);
    parse("fault k10 computer=reboot:2.5");
    assert_true(c.part == USI_COMPONENT_COMPUTER && c.fault == USI_FAULT_REBOOT && c.number[0] == 2.5);
    parse("fault k10 link=loss:0.25");
    assert_true(c.part == USI_COMPONENT_LINK && c.fault == USI_FAULT_LOSS && c.number[0] == 0.25);
    parse("fault k10 link=ok");
    assert_true(c.part == USI_COMPONENT_LINK && c.fault == USI_FAULT_NONE);
    parse("fault \"old rover\" motor:arm=ok");
    assert_int_equal(c.fault, USI_FAULT_NONE);
    parse("remove steinbl\xc3\xb6"
          "cke");
    assert_string_equal(c.name, "steinbl\xc3\xb6"
                                "cke");
}

static void every_pair_value_has_a_name_and_a_place(void **state) {
    (void)state;
    us_pair_values v;
    for (int32_t i = 0; i < USI_PAIR_KEYS; i++) {
        assert_non_null(usi_pair_key_name(i));
        *usi_pair_field(&v, i) = i;
        char text[100];
        snprintf(text, sizeof text, "pair a b %s=1", usi_pair_key_name(i));
        parse(text);
        assert_int_equal(c.value[0].field, i);
    }
    // Twelve doubles, each reached once.
    for (int32_t i = 0; i < USI_PAIR_KEYS; i++)
        assert_true(*usi_pair_field(&v, i) == i);
    assert_int_equal(sizeof v, USI_PAIR_KEYS * sizeof(double));
    assert_null(usi_pair_key_name(USI_PAIR_KEYS));
}

// The grammar names the numbers of a soil itself: they are those of the library, in any order.
static void every_number_of_a_soil_has_a_key(void **state) {
    (void)state;
    us_soil soil = us_soil_default();
    int32_t n = 0;
#define SOIL_COUNT(field, unit, low, high, what) n++;
    US_SOIL_LIST(SOIL_COUNT)
#undef SOIL_COUNT
    assert_int_equal(n, USI_SOIL_KEYS);
    const double *seen[USI_SOIL_KEYS];
    for (int32_t i = 0; i < USI_SOIL_KEYS; i++) {
        char text[80];
        seen[i] = us_soil_parameter(&soil, usi_soil_key_name(i), NULL, NULL);
        assert_non_null(seen[i]);
        for (int32_t k = 0; k < i; k++)
            assert_ptr_not_equal(seen[i], seen[k]);
        snprintf(text, sizeof text, "soil sand %s=1", usi_soil_key_name(i));
        parse(text);
        assert_true(c.n_value == 1 && c.value[0].field == i && c.value[0].value == 1);
    }
    assert_null(usi_soil_key_name(USI_SOIL_KEYS));
    assert_null(usi_soil_key_name(-1));
}

static void mistakes_are_refused_with_what_to_write_instead(void **state) {
    (void)state;
    const struct {
        const char *text;
        us_status status;
        const char *part;
    } rows[] = {
        {"", US_ERR_SYNTAX, "empty"},
        {"   ", US_ERR_SYNTAX, "empty"},
        {"puase", US_ERR_NAME, "did you mean \"pause\"?"},
        {"Pause", US_ERR_NAME, "pause"},
        {"explode", US_ERR_NAME, "known:"},
        {"pause now", US_ERR_SYNTAX, "write pause"},
        {"pause\nresume", US_ERR_SYNTAX, "control character"},
        {"remove \xff", US_ERR_SYNTAX, "UTF-8"},
        {"remove \xc0\x80", US_ERR_SYNTAX, "UTF-8"},
        {"remove \xed\xa0\x80", US_ERR_SYNTAX, "UTF-8"},
        {"remove \"stone", US_ERR_SYNTAX, "quotes"},
        {"remove", US_ERR_SYNTAX, "write remove NAME"},
        {"remove a b", US_ERR_SYNTAX, "write remove NAME"},
        {"step 0", US_ERR_VALUE, "out of range"},
        {"step -1", US_ERR_VALUE, "out of range"},
        {"step 1.5", US_ERR_VALUE, "whole number"},
        {"step 1e9", US_ERR_VALUE, "out of range"},
        {"step ten", US_ERR_VALUE, "is not a finite number"},
        {"fault k10", US_ERR_SYNTAX, "fault ROBOT motor:JOINT"},
        {"fault k10 motor:a=dead motor:b=dead", US_ERR_SYNTAX, "fault ROBOT motor:JOINT"},
        {"fault k10 wheel=dead", US_ERR_SYNTAX, "names no motor"},
        {"fault k10 motor:wheel", US_ERR_SYNTAX, "names no motor"},
        {"fault k10 motor:=dead", US_ERR_SYNTAX, "names no motor"},
        {"fault k10 moto=r:dead", US_ERR_SYNTAX, "names no motor"},
        {"fault k10 motor:wheel=daed", US_ERR_NAME, "did you mean \"dead\"?"},
        {"fault k10 motor:wheel=", US_ERR_NAME, "known:"},
        {"fault k10 motor:wheel=weak", US_ERR_SYNTAX, "weak needs a number"},
        {"fault k10 motor:wheel=weak:1.5", US_ERR_VALUE, "out of range"},
        {"fault k10 motor:wheel=dead:1", US_ERR_SYNTAX, "dead takes no number"},
        {"fault k10 motor:wheel=ok:1", US_ERR_SYNTAX, "ok takes no number"},
        {"fault k10 motor:wheel=blocked:0", US_ERR_VALUE, "out of range"},
        {"fault k10 motor:wheel=blocked:nan", US_ERR_VALUE, "finite"},
        {"fault k10 encoder:=stuck", US_ERR_SYNTAX, "encoder:JOINT=stuck"},
        {"fault k10 encoder:wheel=jump:", US_ERR_VALUE, "jump"},
        {"fault k10 imu=bias:1,2,3,", US_ERR_VALUE, "bias"},
        {"fault k10 imu=bias:1,2,3,4,5,6,7", US_ERR_VALUE, "more than 6"},
        {"fault k10 computer:main=reboot", US_ERR_SYNTAX, "computer=reboot"},
        {"fault k10 link=outage:-1", US_ERR_VALUE, "out of range"},
        {"fault k10 link", US_ERR_SYNTAX, "link=outage"},
        {"rate", US_ERR_SYNTAX, "rate real"},
        {"rate 0", US_ERR_VALUE, "rate max"},
        {"rate -2", US_ERR_VALUE, "rate max"},
        {"rate nan", US_ERR_VALUE, "rate max"},
        {"rate inf", US_ERR_VALUE, "rate max"},
        {"rate 1e4", US_ERR_VALUE, "1000"},
        {"snapshot", US_ERR_SYNTAX, "snapshot NAME"},
        {"snapshot ../x", US_ERR_NAME, "letters"},
        {"snapshot .hidden", US_ERR_NAME, "letters"},
        {"snapshot aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", US_ERR_NAME,
         "up to 64"},
        {"record x", US_ERR_NAME, ".mcap"},
        {"record .mcap", US_ERR_NAME, "letters"},
        {"record ../x.mcap", US_ERR_NAME, "letters"},
        {"record /tmp/x.mcap", US_ERR_NAME, "letters"},
        {"record", US_ERR_SYNTAX, "record off"},
        {"authority k10", US_ERR_SYNTAX, "authority ROBOT"},
        {"authority k10 proxi", US_ERR_NAME, "did you mean \"proxy\"?"},
        {"pair a b", US_ERR_SYNTAX, "for example"},
        {"pair a b static-friction", US_ERR_SYNTAX, "KEY=VALUE"},
        {"pair a b static-friction=", US_ERR_SYNTAX, "KEY=VALUE"},
        {"pair a b =1", US_ERR_SYNTAX, "KEY=VALUE"},
        {"pair a b static-fricton=1", US_ERR_NAME, "did you mean \"static-friction\"?"},
        {"pair a b static-friction=nan", US_ERR_VALUE, "static-friction"},
        {"pair a b static-friction=-0.1", US_ERR_VALUE, "out of range"},
        {"pair a b restitution=1.1", US_ERR_VALUE, "from 0 to 1"},
        {"pair a b viscous=1 viscous=2", US_ERR_NAME, "twice"},
        {"pair a b model=soil model=soil", US_ERR_NAME, "twice"},
        {"pair a b friction=1 static-friction=2", US_ERR_NAME, "twice"},
        {"add", US_ERR_SYNTAX, "for example"},
        {"add box", US_ERR_SYNTAX, "for example"},
        {"add robot k11", US_ERR_SYNTAX, "exactly one of file= and xml="},
        {"add robot k11 file=a.urdf xml=<robot/>", US_ERR_SYNTAX, "exactly one of file= and xml="},
        {"add robot k11 file=a.urdf file=b.urdf", US_ERR_NAME, "twice"},
        {"add robot k11 size=1", US_ERR_NAME, "known: file"},
        {"add robot k11 file=a.urdf at=0,0", US_ERR_VALUE, "3 numbers"},
        {"add robot k11 file=a.urdf fixed=maybe", US_ERR_VALUE, "fixed=true"},
        {"add robot a/b file=a.urdf", US_ERR_NAME, "cannot be a name"},
        {"add robot a xml=<robot>\x01</robot>", US_ERR_SYNTAX, "control character"},
        {"clear all", US_ERR_SYNTAX, "write clear"},
        {"home k10", US_ERR_SYNTAX, "write home"},
        {"reset all", US_ERR_SYNTAX, "reset keep"},
        {"add cube crate size=1,1,1", US_ERR_NAME, "known: box"},
        {"add spheer ball size=1", US_ERR_NAME, "did you mean \"sphere\"?"},
        {"add box crate", US_ERR_SYNTAX, "size is missing"},
        {"add box a/b size=1,1,1", US_ERR_NAME, "cannot be a name"},
        {"add box crate size=1,1", US_ERR_VALUE, "three lengths"},
        {"add box crate size=1,1,1,1", US_ERR_VALUE, "three lengths"},
        {"add sphere ball size=1,2", US_ERR_VALUE, "the radius"},
        {"add box crate size=1,,1", US_ERR_VALUE, "three lengths"},
        {"add box crate size=1,1,0", US_ERR_VALUE, "write lengths"},
        {"add box crate size=1,1,-1", US_ERR_VALUE, "three lengths"},
        {"add box crate size=1,1,1e9", US_ERR_VALUE, "three lengths"},
        {"add capsule pill size=0,1", US_ERR_VALUE, "write lengths"},
        {"add box crate size=1,1,1 at=0,0", US_ERR_VALUE, "3 numbers"},
        {"add box crate size=1,1,1 at=0,0,inf", US_ERR_VALUE, "at"},
        {"add box crate size=1,1,1 rpy=0,0,0,0", US_ERR_VALUE, "rpy"},
        {"add box crate size=1,1,1 mass=0", US_ERR_VALUE, "mass"},
        {"add box crate size=1,1,1 density=-1", US_ERR_VALUE, "density"},
        {"add box crate size=1,1,1 mass=1 density=1", US_ERR_VALUE, "keep one"},
        {"add box crate size=1,1,1 rgba=1,1,2,1", US_ERR_VALUE, "from 0 to 1"},
        {"add box crate size=1,1,1 fixed=yes", US_ERR_VALUE, "fixed=true"},
        {"add box crate size=1,1,1 fixed=true velocity=1,0,0", US_ERR_VALUE, "velocity"},
        {"add box crate size=1,1,1 colour=red", US_ERR_NAME, "known: size"},
        {"add box crate size=1,1,1 size=1,1,1", US_ERR_NAME, "twice"},
        {"move stone", US_ERR_SYNTAX, "move NAME X Y Z"},
        {"move stone 1 2", US_ERR_SYNTAX, "move NAME X Y Z"},
        {"move stone 1 2 3 4", US_ERR_SYNTAX, "move NAME X Y Z"},
        {"move stone 1 2 nan", US_ERR_VALUE, "z:"},
        {"move stone 1 2 0x10", US_ERR_VALUE, "z:"},
        {"move stone 1 2 3m", US_ERR_VALUE, "is not a number"},
        {"move stone 1e7 2 3", US_ERR_VALUE, "out of range"},
        {"velocity stone 1 2", US_ERR_SYNTAX, "velocity NAME VX VY VZ [WX WY WZ]"},
        {"velocity stone 1 2 3 4", US_ERR_SYNTAX, "velocity NAME"},
        {"velocity stone 1 2 1e5", US_ERR_VALUE, "vz"},
        {"velocity stone 1 2 3 0 nan 0", US_ERR_VALUE, "wy"},
        {"raise stone", US_ERR_SYNTAX, "raise NAME H"},
        {"raise stone x", US_ERR_VALUE, "height"},
        {"joint elbow", US_ERR_SYNTAX, "joint NAME Q [V]"},
        {"joint elbow 1e400", US_ERR_VALUE, "position"},
        {"joint elbow 1 2 3", US_ERR_SYNTAX, "joint NAME Q [V]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        refused(rows[i].text, rows[i].status, rows[i].part);
}

static void lines_and_words_have_their_bounds(void **state) {
    (void)state;
    char text[USI_COMMAND_MAX + 2];
    memset(text, ' ', sizeof text);
    memcpy(text, "pause", 5);
    text[USI_COMMAND_MAX] = 0;
    parse(text);
    text[USI_COMMAND_MAX] = ' ';
    text[USI_COMMAND_MAX + 1] = 0;
    refused(text, US_ERR_LIMIT, "longer than 4096");
    char many[400];
    int n = snprintf(many, sizeof many, "pair");
    for (int i = 0; i < 64; i++)
        n += snprintf(many + n, sizeof many - (size_t)n, " a");
    refused(many, US_ERR_LIMIT, "words");
}

static void a_robot_is_named_by_a_file_or_brought_along(void **state) {
    (void)state;
    us_error err = {0};
    assert_int_equal(usi_command_parse("add robot k11 \"file=my robots/k10.urdf\" at=1,2,3 rpy=0,0,1 "
                                       "namespace=site/k11 fixed=true",
                                       &c, &err),
                     US_OK);
    assert_true(c.verb == USI_VERB_ADD && c.is_robot && c.spawn.has_base && c.object.is_fixed);
    assert_string_equal(c.name, "k11");
    assert_string_equal(c.spawn.file, "my robots/k10.urdf");
    assert_string_equal(c.spawn.namespace_, "site/k11");
    assert_true(c.object.position[2] == 3 && c.object.rpy[2] == 1 && !c.spawn.xml);
    // The text goes to the end of the line, with blanks and quotes, and is longer than a command may be.
    static char text[USI_COMMAND_MAX + USI_RESOURCE_MAX + 64];
    const int n = snprintf(text, sizeof text, "add robot k11 at=1,2,3 xml=");
    memset(text + n, ' ', USI_RESOURCE_MAX);
    memcpy(text + n, "<robot name=\"k 11\"/>", strlen("<robot name=\"k 11\"/>"));
    text[n + USI_RESOURCE_MAX] = 0;
    assert_int_equal(usi_command_parse(text, &c, &err), US_OK);
    assert_ptr_equal(c.spawn.xml, text + n);
    assert_true(c.object.position[0] == 1 && !c.spawn.file && !c.spawn.has_base);
    text[n + USI_RESOURCE_MAX] = ' ';
    text[n + USI_RESOURCE_MAX + 1] = 0;
    assert_int_equal(usi_command_parse(text, &c, &err), US_ERR_LIMIT);
}

static void texts_are_cleaned_for_others(void **state) {
    (void)state;
    char out[16];
    usi_text_clean("a\x01"
                   "b\xff"
                   "c",
                   out, sizeof out);
    assert_string_equal(out, "a?b?c");
    // Cut between characters, never inside one.
    usi_text_clean("abcdefghijklmn\xc3\xb6", out, sizeof out);
    assert_string_equal(out, "abcdefghijklmn");
    usi_text_clean("abcdefghijklm\xc3\xb6", out, sizeof out);
    assert_string_equal(out, "abcdefghijklm\xc3\xb6");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_soil_has_a_key),
        cmocka_unit_test(commands_about_time_are_read),
        cmocka_unit_test(commands_about_the_world_are_read),
        cmocka_unit_test(every_pair_value_has_a_name_and_a_place),
        cmocka_unit_test(mistakes_are_refused_with_what_to_write_instead),
        cmocka_unit_test(lines_and_words_have_their_bounds),
        cmocka_unit_test(a_robot_is_named_by_a_file_or_brought_along),
        cmocka_unit_test(texts_are_cleaned_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
