// Robot files as strangers write them. A table has one habit per row, and what becomes of it: read in
// silence, read with a warning, or refused. Then a generator with seeds puts habits together, turns
// attributes round, and wounds whole files at random.
//
// Whatever comes out, it is either a model that starts and steps, or an error; every error and every warning
// has file, line and remedy.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/understudy.h"

// ---- The robot with slots ----

typedef enum slot {
    PROLOG,
    ROBOT,     // attributes of <robot>
    BASE,      // inside the root link
    INERTIAL,  // inside the arm
    MASS,      // inside its <inertial>
    INERTIA,
    SHAPES,     // inside the arm
    TYPE,       // of the shoulder
    NAME,       // of the shoulder
    PLACE,      // <origin> of the shoulder
    AXIS,       // of the shoulder
    LIMIT,      // of the shoulder
    DYNAMICS,   // of the shoulder
    FOLLOWS,    // inside the wrist
    TAIL_TYPE,  // of the joint to the tool
    TAIL,       // inside it
    TOP,        // inside <robot>
    N_SLOT
} slot;

static const char *const usual[N_SLOT] = {
    [PROLOG] = "<?xml version='1.0'?>\n",
    [ROBOT] = "name='r'",
    [BASE] = "",
    [INERTIAL] = "",
    [MASS] = "<mass value='2'/>",
    [INERTIA] = "<inertia ixx='0.02' ixy='0' ixz='0' iyy='0.02' iyz='0' izz='0.01'/>",
    [SHAPES] = ("<visual><geometry><box size='0.1 0.1 0.3'/></geometry></visual>"
                "<collision><geometry><cylinder radius='0.05' length='0.3'/></geometry></collision>"),
    [TYPE] = "revolute",
    [NAME] = "shoulder",
    [PLACE] = "<origin xyz='0 0 0.1' rpy='0 0.2 0'/>",
    [AXIS] = "<axis xyz='0 1 0'/>",
    [LIMIT] = "<limit lower='-1' upper='1' effort='10' velocity='2'/>",
    [DYNAMICS] = "<dynamics damping='0.1' friction='0.01'/>",
    [FOLLOWS] = "",
    [TAIL_TYPE] = "fixed",
    [TAIL] = "",
    [TOP] = "",
};

enum { TEXT_MAX = 1 << 16, MESSAGE_MAX = 1200 };

static void write_robot(const char *const part[N_SLOT], char *out) {
    snprintf(out, TEXT_MAX,
             "%s<robot %s>\n"
             "<link name='base'>%s</link>\n"
             "<link name='arm'>\n<inertial>%s\n%s\n%s</inertial>\n%s\n</link>\n"
             "<link name='hand'>\n<inertial><origin xyz='0 0 0.1'/><mass value='0.5'/>\n"
             "<inertia ixx='0.002' ixy='0' ixz='0' iyy='0.002' iyz='0' izz='0.001'/></inertial>\n</link>\n"
             "<link name='tool'/>\n"
             "<joint name='%s' type='%s'>\n<parent link='base'/>\n<child link='arm'/>\n%s\n%s\n%s\n%s\n"
             "</joint>\n"
             "<joint name='wrist' type='continuous'><parent link='arm'/><child link='hand'/>\n"
             "<origin xyz='0 0 0.3'/><axis xyz='0 0 1'/>%s</joint>\n"
             "<joint name='mount' type='%s'><parent link='hand'/><child link='tool'/>%s</joint>\n"
             "%s</robot>\n",
             part[PROLOG], part[ROBOT], part[BASE], part[INERTIAL], part[MASS], part[INERTIA], part[SHAPES],
             part[NAME], part[TYPE], part[PLACE], part[AXIS], part[LIMIT], part[DYNAMICS], part[FOLLOWS],
             part[TAIL_TYPE], part[TAIL], part[TOP]);
}

// ---- Habits ----

typedef enum outcome { SILENT, TOLD, REFUSED } outcome;

typedef struct habit {
    slot slot;
    const char *text;
    outcome outcome;
    const char *says;  // a part of the warning or error
} habit;

#define SHAPE(inner) "<collision><geometry>" inner "</geometry></collision>"
#define INERTIA_OF(xx, yy, zz, xy) \
    "<inertia ixx='" xx "' iyy='" yy "' izz='" zz "' ixy='" xy "' ixz='0' iyz='0'/>"

static const habit habits[] = {
    // The file
    {PROLOG, "", SILENT, NULL},
    {PROLOG, "\xEF\xBB\xBF<?xml version='1.0' encoding='utf-8'?>\n", SILENT, NULL},
    {PROLOG, "<!-- made by hand -->\n<?xml version='1.0'?>\n", TOLD, "the XML declaration stands behind"},
    {PROLOG, "\n\n  <?xml version='1.0' encoding='utf-8'?>\n", TOLD, "the XML declaration stands behind"},
    {PROLOG, "\xEF\xBB\xBF<!-- a --><!-- b -->\n<?xml version='1.0'\n encoding='ISO-8859-1'?>\n", TOLD,
     "the XML declaration stands behind"},
    {PROLOG, "<?xml-stylesheet href='a.css'?>\n", SILENT, NULL},
    {PROLOG, "<!-- a -->\n<?xml version='1.0'?>\n<?xml version='1.0'?>\n", REFUSED, "XML declaration"},
    {PROLOG, "<!-- never closed <?xml version='1.0'?>\n", REFUSED, "ends too early"},
    {ROBOT, "", SILENT, NULL},
    {ROBOT, "name='r' xmlns:xacro='http://www.ros.org/wiki/xacro'", SILENT, NULL},
    {ROBOT, "Name='r'", TOLD, "is not known in <robot>"},
    {TOP, "<Link name='x'/>", TOLD, "<Link> is not known"},
    {TOP, "<LINK NAME='x'/>", TOLD, "<LINK> is not known"},
    {TOP, "<gazebo reference='arm'><material>Gazebo/Red</material></gazebo>", SILENT, NULL},
    {TOP, "<gazebo><plugin name='p' filename='p.so'/></gazebo>", SILENT, NULL},
    {TOP, "<gazebo reference='nobody'/>", TOLD, "refers to \"nobody\""},
    {TOP,
     "<transmission name='t'><type>transmission_interface/SimpleTransmission</type><joint "
     "name='wrist'/></transmission>",
     SILENT, NULL},
    {TOP, "<transmission name='t'><joint name='nobody'/></transmission>", TOLD, "refers to \"nobody\""},
    {TOP, "<ros2_control name='c' type='system'><hardware/></ros2_control>", SILENT, NULL},
    {TOP, "<sensor name='camera'/>", TOLD, "<sensor> is not known"},
    {TOP, "<mujoco><compiler meshdir='meshes'/></mujoco>", TOLD, "<mujoco> is not known"},
    {TOP,
     "<material name='red'><color rgba='1 0 0 1'/></material><material name='red'><color rgba='1 0 0 "
     "1'/></material>",
     SILENT, NULL},
    {TOP,
     "<material name='red'><color rgba='1 0 0 1'/></material><material name='red'><color rgba='0 0 1 "
     "1'/></material>",
     TOLD, "the material \"red\" has two colours"},
    {TOP, "<material name='red'><color rgba='255 0 0 1'/></material>", TOLD, "goes beyond 0 .. 1"},
    {TOP, "<material name='red'/>", SILENT, NULL},
    {TOP, "<link name='island'/>", REFUSED, "are the child of no joint"},
    {TOP, "<link name='arm'/>", REFUSED, "is used twice"},
    {TOP, "<xacro:property xmlns:xacro='x' name='a' value='1'/>", REFUSED, "is xacro"},
    // Inertia
    {BASE, "<inertial><mass value='1'/></inertial>", SILENT, NULL},
    {BASE, "<inertial/>", REFUSED, "has no <mass>"},
    {MASS, "", REFUSED, "has no <mass>"},
    {MASS, "<mass/>", REFUSED, "\"value\" is missing"},
    {MASS, "<mass value=''/>", REFUSED, "1 number is needed"},
    {MASS, "<mass value='4e-15'/>", TOLD, "too small to be meant: the link is massless"},
    {MASS, "<mass value='1e-310'/>", TOLD, "too small to be meant: the link is massless"},
    {MASS, "<mass value='0'/>", TOLD, "has inertia but no mass"},
    {MASS, "<mass value='-1'/>", REFUSED, "negative mass"},
    {MASS, "<mass value='nan'/>", REFUSED, "not a finite number"},
    {MASS, "<mass value='2.0 kg'/>", REFUSED, "\"kg\" is not a"},
    {MASS, "<mass value='2,5'/>", REFUSED, "is not a number"},
    {MASS, "<mass value=' 2.0 '/>", SILENT, NULL},
    {MASS, "<Mass value='2'/>", REFUSED, "has no <mass>"},
    {INERTIA, "", TOLD, "has a mass but no inertia"},
    {INERTIA, INERTIA_OF("0", "0", "0", "0"), TOLD, "has a mass but no inertia"},
    {INERTIA, INERTIA_OF("-0.02", "-0.02", "-0.01", "0"), TOLD, "no body has the principal moments"},
    {INERTIA, INERTIA_OF("0", "1", "1", "0"), TOLD, "no body has the principal moments"},
    {INERTIA, INERTIA_OF("1", "1", "100", "0"), TOLD, "no body has the principal moments"},
    {INERTIA, INERTIA_OF("1", "1", "1", "1"), TOLD, "no body has the principal moments"},
    {INERTIA, INERTIA_OF("1e-20", "1e-20", "1e-20", "0"), SILENT, NULL},
    {INERTIA, "<inertia ixx='1' iyy='1'/>", REFUSED, "\"izz\" is missing"},
    {INERTIA, "<inertia ixx='1' iyy='1' izz='1'/>", SILENT, NULL},
    // Shapes
    {SHAPES, "", SILENT, NULL},
    {SHAPES, "<visual/>", REFUSED, "has no <geometry>"},
    {SHAPES, "<collision><geometry/></collision>", REFUSED, "the <geometry> is empty"},
    {SHAPES, SHAPE("<box size='0 0 0'/>"), TOLD, "has a length of 0 and is left out"},
    {SHAPES, SHAPE("<sphere radius='0'/>"), TOLD, "has a length of 0 and is left out"},
    {SHAPES, SHAPE("<cylinder radius='1e-300' length='1'/>"), SILENT, NULL},
    {SHAPES, SHAPE("<box size='1 1'/>"), REFUSED, "3 numbers are needed, 2 given"},
    {SHAPES, SHAPE("<box size='-1 1 1'/>"), REFUSED, "negative length"},
    {SHAPES, SHAPE("<Box size='1 1 1'/>"), REFUSED, "invalid shape <Box>"},
    {SHAPES, SHAPE("<cone radius='1' length='1'/>"), REFUSED, "invalid shape <cone>"},
    {SHAPES, SHAPE("<mesh filename='package://nobody/a.stl'/>"), TOLD, "package"},
    {SHAPES, SHAPE("<mesh filename='package://nobody/a.stl' scale='0.001'/>"), TOLD,
     "a scale of one number, 0.001"},
    {SHAPES, SHAPE("<mesh filename='a.stl' scale='0.001 0.001'/>"), REFUSED, "3 numbers are needed, 2 given"},
    {SHAPES, SHAPE("<mesh filename='a.stl' scale='0'/>"), REFUSED, "the scale 0"},
    {SHAPES, SHAPE("<mesh filename='a.stl' scale='small'/>"), REFUSED, "not a finite number"},
    {SHAPES, SHAPE("<mesh filename=''/>"), REFUSED, "names no file"},
    {SHAPES, SHAPE("<mesh filename='file:///nowhere/at/all.dae'/>"), TOLD, "all.dae"},
    {SHAPES, "<visual><geometry><box size='1 1 1'/></geometry><material name='unknown'/></visual>", TOLD,
     "has no colour anywhere"},
    {SHAPES,
     "<visual><geometry><box size='1 1 1'/></geometry><material name='a'><texture "
     "filename='a.png'/></material></visual>",
     SILENT, NULL},
    {SHAPES, "<visual><geometry><box size='1 1 1'/></geometry><material/></visual>", SILENT, NULL},
    {SHAPES, "<visual><origin/><geometry><box size='1 1 1'/></geometry></visual>", SILENT, NULL},
    // Joints
    {NAME, "fixed_base", TOLD, "is called \"world_fixed_base\""},
    {NAME, "floating_base", SILENT, NULL},
    {NAME, "wrist", REFUSED, "is used twice"},
    {NAME, "", REFUSED, "has no name"},
    {NAME, "joint with blanks", SILENT, NULL},
    {TYPE, "Revolute", REFUSED, "invalid joint type"},
    {TYPE, "ball", REFUSED, "invalid joint type"},
    {TYPE, "prismatic", SILENT, NULL},
    {TYPE, "fixed", SILENT, NULL},
    {TYPE, "continuous", SILENT, NULL},
    {TYPE, "planar", SILENT, NULL},
    {TYPE, "floating", SILENT, NULL},
    {PLACE, "", SILENT, NULL},
    {PLACE, "<origin/>", SILENT, NULL},
    {PLACE, "<origin rpy='0 0 1.57'/>", SILENT, NULL},
    {PLACE, "<origin xyz='0 0 nan'/>", REFUSED, "not a finite number"},
    {PLACE, "<origin xyz='0, 0, 1'/>", REFUSED, "is not a number"},
    {PLACE, "<origin xyz='0 0 0.1m'/>", REFUSED, "is not a number"},
    {PLACE, "<origin xyz='0 0 10cm' rpy='0 0 90deg'/>", REFUSED, "is not a number"},
    {PLACE, "<origin pos='0 0 1'/>", TOLD, "is not known in <origin>"},
    {PLACE, "<origin xyz='0 0 1'/><origin xyz='0 0 2'/>", TOLD, "more than once"},
    {AXIS, "", SILENT, NULL},
    {AXIS, "<axis/>", SILENT, NULL},
    {AXIS, "<axis xyz='0 0 2'/>", TOLD, "has the length 2"},
    {AXIS, "<axis xyz='1 1 1'/>", TOLD, "has the length 1.73205"},
    {AXIS, "<axis xyz='0 0 0'/>", REFUSED, "has no length"},
    {AXIS, "<axis xyz='0 -1 0'/>", SILENT, NULL},
    {AXIS, "<axis xyz='nan 0 0'/>", REFUSED, "not a finite number"},
    {AXIS, "<axis xyz='0 0 1' rpy='0 0 1'/>", TOLD, "rpy has no meaning"},
    {LIMIT, "", TOLD, "has no <limit>"},
    {LIMIT, "<limit effort='1' velocity='1'/>", TOLD, "cannot move"},
    {LIMIT, "<limit lower='1' upper='-1' effort='1' velocity='1'/>", REFUSED, "is above the upper one"},
    {LIMIT, "<limit lower='-inf' upper='inf' effort='inf' velocity='inf'/>", SILENT, NULL},
    {LIMIT, "<limit lower='-1e30' upper='1e30' effort='1e30' velocity='1e30'/>", SILENT, NULL},
    {LIMIT, "<limit lower='-1' upper='1' effort='-1' velocity='-1'/>", TOLD, "is negative: there is none"},
    {LIMIT, "<limit lower='-1' upper='1'/>", SILENT, NULL},
    {LIMIT, "<limit lower='0.5' upper='1' effort='1' velocity='1'/>", TOLD, "starts at its limit"},
    {LIMIT, "<limit lower='-pi' upper='pi'/>", REFUSED, "not a finite number"},
    {LIMIT, "<limit lower='nan' upper='1'/>", REFUSED, "not a finite number"},
    {LIMIT, "<Limit lower='-1' upper='1'/>", TOLD, "<Limit> is not known"},
    {DYNAMICS, "", SILENT, NULL},
    {DYNAMICS, "<dynamics/>", SILENT, NULL},
    {DYNAMICS, "<dynamics damping='-1'/>", REFUSED, "is negative"},
    {DYNAMICS, "<dynamics damping='0.1' spring_stiffness='3'/>", TOLD, "is not known in <dynamics>"},
    {DYNAMICS, "<safety_controller soft_lower_limit='-1' k_velocity='1'/><calibration rising='0'/>", SILENT,
     NULL},
    {FOLLOWS, "<mimic joint='shoulder'/>", SILENT, NULL},
    {FOLLOWS, "<mimic joint='mount' offset='0.5'/>", TOLD, "is held at its offset, 0.5"},
    {FOLLOWS, "<mimic joint='wrist'/>", REFUSED, "mimics itself"},
    {FOLLOWS, "<mimic joint='nobody'/>", REFUSED, "which does not exist"},
    {FOLLOWS, "<mimic/>", REFUSED, "names no joint"},
    {TAIL, "<mimic joint='wrist' multiplier='2'/>", TOLD, "is fixed and mimics \"wrist\": it stays fixed"},
    {TAIL, "<axis xyz='0 0 0'/>", SILENT, NULL},
    {TAIL, "<limit lower='2' upper='1'/>", SILENT, NULL},
    {TAIL_TYPE, "continuous", TOLD, "it stays massless"},
};
enum { N_HABIT = sizeof habits / sizeof *habits };

// ---- The judge ----

static bool has_place(const us_error *e) {
    return e->file[0] && e->line > 0 && e->message[0] && e->remedy[0];
}

typedef struct verdict {
    us_status status;
    bool is_good;  // as the head of this file says
    int n_warning;
    char text[MESSAGE_MAX];  // of the error, or what is wrong
    us_model *model;
} verdict;

static void note(verdict *v, const char *what, const us_error *e) {
    v->is_good = false;
    snprintf(v->text, sizeof v->text, "%s: %s:%d: %s (%s)", what, e->file, (int)e->line, e->message,
             e->remedy);
}

// The first steps of what was read. A motion that diverges is an error with a name, too.
static void start(verdict *v) {
    us_sim *sim = NULL;
    us_error err = {0};
    if (us_sim_create(v->model, NULL, &sim, &err)) {
        note(v, "a model that does not start", &err);
        return;
    }
    for (int k = 0; k < 5; k++) {
        if (us_sim_step(sim, NULL) == US_OK) continue;
        if (!us_sim_view_error(sim)->message[0]) note(v, "a step fails silently", us_sim_view_error(sim));
        break;
    }
    us_sim_destroy(sim);
}

// The caller destroys v->model.
static void judge(const char *text, us_base base, const char *fragment, bool *out_is_told, verdict *v) {
    us_load_def def = us_load_def_default();
    us_spec *spec = NULL;
    us_error err = {0};
    memset(v, 0, sizeof *v);
    v->is_good = true;
    def.base = base;
    v->status = us_spec_load_text(text, strlen(text), "stranger.urdf", &def, &spec, &err);
    if (!v->status) v->status = us_model_compile(spec, NULL, &v->model, &err);
    if (v->status) {
        snprintf(v->text, sizeof v->text, "%s", err.message);
        *out_is_told = fragment && strstr(err.message, fragment);
        if (!has_place(&err)) note(v, "an error without file, line or remedy", &err);
        us_spec_destroy(spec);
        return;
    }
    v->n_warning = us_spec_get_counts(spec).n_warning;
    *out_is_told = false;
    for (int i = 0; i < v->n_warning; i++) {
        const us_error *w = us_spec_view_warning(spec, i);
        *out_is_told |= fragment && strstr(w->message, fragment);
        snprintf(v->text, sizeof v->text, "%s", w->message);
        if (!has_place(w)) note(v, "a warning without file, line or remedy", w);
    }
    if (v->is_good) start(v);
    us_spec_destroy(spec);
}

// ---- One habit at a time ----

static void every_habit_has_its_outcome(void **state) {
    (void)state;
    static char text[TEXT_MAX];
    int n_wrong = 0;
    for (int i = 0; i < N_HABIT; i++) {
        const char *part[N_SLOT];
        memcpy(part, usual, sizeof part);
        part[habits[i].slot] = habits[i].text;
        write_robot(part, text);
        verdict v;
        bool is_told = false;
        judge(text, US_BASE_FIXED, habits[i].says, &is_told, &v);
        us_model_destroy(v.model);
        outcome is = v.status ? REFUSED : v.n_warning > 0 ? TOLD : SILENT;
        if (v.is_good && is == habits[i].outcome && is_told == (habits[i].says != NULL)) continue;
        n_wrong++;
        print_error("%s\n  outcome %d, not %d: %s\n", habits[i].text, (int)is, (int)habits[i].outcome,
                    v.text);
    }
    assert_int_equal(n_wrong, 0);
}

static void the_plain_robot_is_read_in_silence(void **state) {
    (void)state;
    static char text[TEXT_MAX];
    write_robot(usual, text);
    for (int base = 0; base < 2; base++) {
        verdict v;
        bool is_told = false;
        judge(text, base ? US_BASE_FLOATING : US_BASE_FIXED, NULL, &is_told, &v);
        us_model_destroy(v.model);
        assert_true(v.is_good);
        assert_int_equal(v.status, US_OK);
        // On a floating base the massless root link counts.
        assert_int_equal(v.n_warning, base);
    }
}

static void a_joint_called_floating_base_keeps_its_name_and_the_base_moves(void **state) {
    (void)state;
    static char text[TEXT_MAX];
    const char *part[N_SLOT];
    memcpy(part, usual, sizeof part);
    part[NAME] = "floating_base";
    part[BASE] = "<inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1'/></inertial>";
    part[TOP] = "<link name='x'/><joint name='world_floating_base' type='fixed'><parent link='base'/>"
                "<child link='x'/></joint>";
    write_robot(part, text);
    verdict v;
    bool is_told = false;
    judge(text, US_BASE_FLOATING, "is called \"world_floating_base_\"", &is_told, &v);
    assert_true(v.is_good && is_told);
    us_joint own = us_model_find_joint(v.model, "floating_base"),
             base = us_model_find_joint(v.model, "world_floating_base_");
    assert_int_equal(us_model_get_joint(v.model, own).type, US_JOINT_REVOLUTE);
    assert_int_equal(us_model_get_joint(v.model, base).type, US_JOINT_FLOATING);
    us_model_destroy(v.model);
}

static void a_joint_that_mimics_a_fixed_one_stays_at_its_offset(void **state) {
    (void)state;
    static char text[TEXT_MAX];
    const char *part[N_SLOT];
    memcpy(part, usual, sizeof part);
    part[FOLLOWS] = "<mimic joint='mount' offset='0.5' multiplier='7'/>";
    write_robot(part, text);
    verdict v;
    bool is_told = false;
    judge(text, US_BASE_FIXED, "held at its offset", &is_told, &v);
    assert_true(v.is_good && is_told);
    us_sim *sim = NULL;
    assert_int_equal(us_sim_create(v.model, NULL, &sim, NULL), US_OK);
    for (int k = 0; k < 200; k++)
        assert_int_equal(us_sim_step(sim, NULL), US_OK);
    us_joint_info wrist = us_model_get_joint(v.model, us_model_find_joint(v.model, "wrist"));
    assert_true(fabs(us_sim_view_q(sim)[wrist.first_q] - 0.5) < 1e-9);
    us_sim_destroy(sim);
    us_model_destroy(v.model);
}

// A body whose moments vanish about an axis that is no axis of its frame: the same with the frame turned in
// a hundred ways.
static void a_body_without_inertia_about_a_slanted_axis_starts(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed < 100; seed++) {
        static char text[TEXT_MAX];
        double turn[3];
        for (uint64_t k = 0; k < 3; k++)
            turn[k] = 6.28 * ((double)(us_random_bits(18, seed, k) >> 11) * 0x1p-53 - 0.5);
        snprintf(text, sizeof text,
                 "<robot name='r'>\n<link name='base'/>\n<link name='rod'><inertial><mass value='1'/>"
                 "<inertia ixx='%s' iyy='1' izz='1'/></inertial></link>\n"
                 "<joint name='j' type='%s'><parent link='base'/><child link='rod'/>"
                 "<origin rpy='%.17g %.17g %.17g'/><axis xyz='0.6 0.8 0'/></joint>\n</robot>\n",
                 seed % 2 ? "0" : "1", seed % 2 ? "fixed" : "continuous", turn[0], turn[1], turn[2]);
        verdict v;
        bool is_told = false;
        judge(text, US_BASE_FLOATING, "nothing resists a motion about its axis", &is_told, &v);
        us_model_destroy(v.model);
        if (!v.is_good || !is_told) fail_msg("seed %d: %s", (int)seed, v.text);
    }
}

// ---- Habits together ----

typedef struct dice {
    uint64_t seed, count;
} dice;
static uint32_t throw(dice * d, uint32_t n) {
    return (uint32_t)((us_random_bits(1818, d->seed, d->count++) >> 32) % n);
}

// Turns the order of the attributes of every tag round.
static void turn_attributes(const char *text, char *out) {
    char *to = out;
    while (*text) {
        size_t plain = strcspn(text, "<");
        memcpy(to, text, plain);
        to += plain;
        text += plain;
        size_t tag = strcspn(text, ">"), name = strcspn(text, " >/");
        if (*text != '<' || text[1] == '!' || text[1] == '?' || text[1] == '/' || name >= tag) {
            size_t n = *text ? 1 : 0;
            memcpy(to, text, n);
            to += n;
            text += n;
            continue;
        }
        const char *start[16], *end[16];
        int n = 0;
        const char *at = text + name;
        while (n < 16) {
            while (*at == ' ' || *at == '\n')
                at++;
            const char *quote = memchr(at, '\'', (size_t)(text + tag > at ? text + tag - at : 0)),
                       *close = quote ? strchr(quote + 1, '\'') : NULL;
            if (!close) break;
            start[n] = at;
            end[n++] = at = close + 1;
        }
        memcpy(to, text, name);
        to += name;
        for (int k = n - 1; k >= 0; k--)
            to += snprintf(to, (size_t)(end[k] - start[k]) + 2, " %.*s", (int)(end[k] - start[k]), start[k]);
        text = at;
        size_t rest = strcspn(text, ">");
        memcpy(to, text, rest);
        to += rest;
        text += rest;
    }
    *to = 0;
}

static int n_combination(void) { return getenv("US_LONG_TESTS") ? 100000 : 3000; }

static void habits_together_are_read_or_refused_with_a_place(void **state) {
    (void)state;
    static char text[TEXT_MAX], turned[TEXT_MAX];
    int n_read = 0;
    for (int seed = 0; seed < n_combination(); seed++) {
        dice d = {(uint64_t)seed, 0};
        const char *part[N_SLOT];
        memcpy(part, usual, sizeof part);
        for (uint32_t k = throw(&d, 5) + 1; k > 0; k--) {
            const habit *h = &habits[throw(&d, N_HABIT)];
            // Mostly what can be read, to get beyond the first error.
            if (h->outcome == REFUSED && throw(&d, 4) > 0) continue;
            part[h->slot] = h->text;
        }
        write_robot(part, text);
        turn_attributes(text, turned);
        verdict v;
        bool is_told = false;
        judge(seed % 3 ? text : turned, seed % 2 ? US_BASE_FLOATING : US_BASE_FIXED, NULL, &is_told, &v);
        us_model_destroy(v.model);
        n_read += v.status == US_OK;
        if (!v.is_good) fail_msg("seed %d: %s\n%s", seed, v.text, seed % 3 ? text : turned);
    }
    assert_true(n_read > n_combination() / 3 && n_read < n_combination());
}

// The order of attributes means nothing.
static void turned_attributes_make_the_same_model(void **state) {
    (void)state;
    static char text[TEXT_MAX], turned[TEXT_MAX];
    write_robot(usual, text);
    turn_attributes(text, turned);
    assert_string_not_equal(text, turned);
    verdict a, b;
    bool is_told = false;
    judge(text, US_BASE_FIXED, NULL, &is_told, &a);
    judge(turned, US_BASE_FIXED, NULL, &is_told, &b);
    assert_int_equal(us_model_hash(a.model), us_model_hash(b.model));
    us_model_destroy(a.model);
    us_model_destroy(b.model);
}

// ---- Whole files with wounds ----

static char *read_model(const char *name) {
    char path[512];
    snprintf(path, sizeof path, US_SOURCE_DIR "/models/%s", name);
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    char *text = malloc(TEXT_MAX);
    assert_non_null(text);
    size_t n = fread(text, 1, TEXT_MAX - 4096, f);
    fclose(f);
    text[n] = 0;
    return text;
}

// Takes out the attribute value number `k` and puts another one there; false: there are not so many.
static bool replace_value(const char *text, uint32_t k, const char *value, char *out) {
    const char *at = text;
    for (;;) {
        at = strchr(at, '"');
        if (!at) return false;
        const char *close = strchr(at + 1, '"');
        if (!close) return false;
        if (k-- == 0) {
            size_t before = (size_t)(at + 1 - text), length = strlen(value);
            memcpy(out, text, before);
            memcpy(out + before, value, length);
            memcpy(out + before + length, close, strlen(close) + 1);
            return true;
        }
        at = close + 1;
    }
}

static void wound(dice *d, const char *text, char *out) {
    static const char *const values[] = {"",      "nan",   "inf",  "-1",       "0",        "1e-15", "1e300",
                                         "0 0 0", "1,2,3", "0.5m", "Revolute", "floating", "base",  "&amp;",
                                         "1 2",   "-0",    "1e15", "5e-324",   "world"};
    uint32_t kind = throw(d, 4), n_line = 0, n_value = 0;
    for (const char *c = text; *c; c++) {
        n_line += *c == '\n';
        n_value += *c == '"';
    }
    if (kind < 2 &&
        replace_value(text, throw(d, n_value / 2 + 1), values[throw(d, sizeof values / sizeof *values)], out))
        return;
    // A line is lost, or comes twice.
    uint32_t line = throw(d, n_line + 1);
    const char *from = text;
    for (; line > 0 && strchr(from, '\n'); line--)
        from = strchr(from, '\n') + 1;
    size_t length = strcspn(from, "\n");
    const char *to = kind == 2 ? from + length : from;
    size_t kept = (size_t)(from - text) + (kind == 2 ? 0 : length);
    memcpy(out, text, kept);
    memcpy(out + kept, to, strlen(to) + 1);
}

static void wounded_files_are_read_or_refused_with_a_place(void **state) {
    (void)state;
    static const char *const names[] = {"cart.urdf", "arm6-gripper.urdf", "hexapod.urdf", "k10.urdf",
                                        "rocky8.urdf"};
    int n_each = getenv("US_LONG_TESTS") ? 5000 : 200, n_read = 0, n = 0;
    static char text[2][TEXT_MAX];
    for (size_t f = 0; f < sizeof names / sizeof *names; f++) {
        char *whole = read_model(names[f]);
        for (int seed = 0; seed < n_each; seed++) {
            dice d = {(uint64_t)seed + 1000000 * (f + 1), 0};
            wound(&d, whole, text[0]);
            wound(&d, text[0], text[1]);
            verdict v;
            bool is_told = false;
            judge(text[seed % 2], seed % 4 < 2 ? US_BASE_FLOATING : US_BASE_FIXED, NULL, &is_told, &v);
            us_model_destroy(v.model);
            n_read += v.status == US_OK;
            n++;
            if (!v.is_good) fail_msg("%s, seed %d: %s", names[f], seed, v.text);
        }
        free(whole);
    }
    assert_true(n_read > n / 5 && n_read < n);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plain_robot_is_read_in_silence),
        cmocka_unit_test(every_habit_has_its_outcome),
        cmocka_unit_test(a_joint_called_floating_base_keeps_its_name_and_the_base_moves),
        cmocka_unit_test(a_joint_that_mimics_a_fixed_one_stays_at_its_offset),
        cmocka_unit_test(a_body_without_inertia_about_a_slanted_axis_starts),
        cmocka_unit_test(turned_attributes_make_the_same_model),
        cmocka_unit_test(habits_together_are_read_or_refused_with_a_place),
        cmocka_unit_test(wounded_files_are_read_or_refused_with_a_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
