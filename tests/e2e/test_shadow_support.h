// What the tests of the shadow share: hardware, proxy and switch as the programs they are, each in a domain
// of its own, and what is said of the two.
#ifndef UNDERSTUDY_TEST_SHADOW_SUPPORT_H
#define UNDERSTUDY_TEST_SHADOW_SUPPORT_H

#include "instrumented.h"
#include "test_hardware_support.h"

// The rover on level ground, as examples/hardware has it.
static const char flat_scene[] =
    "<scene name=\"flat\" version=\"1\"><world step=\"1 ms\"><shape name=\"ground\" type=\"plane\" "
    "surface=\"soil\"/></world>"
    "<material name=\"rubber\"/><material name=\"soil\"/><pair a=\"rubber\" b=\"soil\" "
    "static-friction=\"0.7\" kinetic-friction=\"0.7\"/>"
    "<robot name=\"k10\" file=\"" K10
    "\" base=\"floating\" xyz=\"0 0 0.001\"><surface link=\"*_wheel\" surface=\"rubber\"/>"
    "<drive joint=\"front_left_steer\" kp=\"800\" kd=\"60\"/><drive joint=\"front_right_steer\" kp=\"800\" "
    "kd=\"60\"/>"
    "<drive joint=\"rear_left_steer\" kp=\"800\" kd=\"60\"/><drive joint=\"rear_right_steer\" kp=\"800\" "
    "kd=\"60\"/>"
    "<drive joint=\"front_left_drive\" kd=\"40\"/><drive joint=\"front_right_drive\" kd=\"40\"/>"
    "<drive joint=\"rear_left_drive\" kd=\"40\"/><drive joint=\"rear_right_drive\" kd=\"40\"/>"
    "<network namespace=\"k10\" timeout=\"0.5 s\"/>"
    "<locomotion type=\"all-wheel\" max-speed=\"0.9 m/s\" max-turn=\"1.5 rad/s\" max-acceleration=\"1 "
    "m/s^2\">"
    "<wheel drive=\"front_left_drive\" steer=\"front_left_steer\" radius=\"0.18 m\"/>"
    "<wheel drive=\"front_right_drive\" steer=\"front_right_steer\" radius=\"0.18 m\"/>"
    "<wheel drive=\"rear_left_drive\" steer=\"rear_left_steer\" radius=\"0.18 m\"/>"
    "<wheel drive=\"rear_right_drive\" steer=\"rear_right_steer\" radius=\"0.18 m\"/></locomotion>"
    "<battery capacity=\"500 Wh\" idle=\"40 W\" voltage=\"48 V\"/></robot></scene>";

// What is said of the two.
typedef struct said {
    char state[16], worst[128];
    double confidence, lag, least;  // least: since it was last forgotten
    int64_t n, n_not_ok, n_event;
    char event[2048];
} said;

typedef struct pair {
    pid_t hardware, proxy, sw;
    operator_ *operator_;
    pthread_mutex_t lock;
    said said;
} pair;

static inline cJSON *read_line(const us_sample *s) {
    return s->length > 8 ? cJSON_ParseWithLength((const char *)s->bytes + 8, s->length - 9) : NULL;
}

static inline void hear_shadow(void *context, const us_sample *s) {
    pair *p = context;
    cJSON *json = read_line(s);
    const cJSON *state = cJSON_GetObjectItem(json, "state"), *worst = cJSON_GetObjectItem(json, "worst");
    const cJSON *confidence = cJSON_GetObjectItem(json, "confidence"),
                *lag = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "offset"), "lag");
    pthread_mutex_lock(&p->lock);
    said *d = &p->said;
    if (cJSON_IsString(state) && cJSON_IsString(worst) && cJSON_IsNumber(confidence) && cJSON_IsNumber(lag)) {
        snprintf(d->state, sizeof d->state, "%s", state->valuestring);
        snprintf(d->worst, sizeof d->worst, "%s", worst->valuestring);
        d->confidence = confidence->valuedouble;
        d->lag = lag->valuedouble;
        d->least = fmin(d->least, d->confidence);
        d->n_not_ok += strcmp(d->state, "ok") != 0;
        d->n++;
    }
    pthread_mutex_unlock(&p->lock);
    cJSON_Delete(json);
}

static inline void hear_event(void *context, const us_sample *s) {
    pair *p = context;
    pthread_mutex_lock(&p->lock);
    snprintf(p->said.event, sizeof p->said.event, "%.*s", (int)s->length - 8, (const char *)s->bytes + 8);
    p->said.n_event++;
    pthread_mutex_unlock(&p->lock);
}

static inline said hear_of(pair *p) {
    pthread_mutex_lock(&p->lock);
    said d = p->said;
    pthread_mutex_unlock(&p->lock);
    return d;
}

static inline void forget_what_was_said(pair *p) {
    pthread_mutex_lock(&p->lock);
    p->said.least = 1;
    p->said.n_not_ok = 0;
    pthread_mutex_unlock(&p->lock);
}

static inline bool is_state(pair *p, const char *state) { return strcmp(hear_of(p).state, state) == 0; }

// The operators' domain is the one of the environment; the hardware has the next, the proxy the third.
static inline pair *start_pair_with(const char *hardware_options, const char *switch_options) {
    pair *p = calloc(1, sizeof *p);
    assert_non_null(p);
    pthread_mutex_init(&p->lock, NULL);
    p->said.least = 1;
    write_text("flat.xml", flat_scene);
    use_domain(test_domain_of(1));
    p->hardware = start_hardware(hardware_options);
    use_domain(test_domain_of(2));
    p->proxy = start("proxy", "run flat.xml --headless --quiet");
    use_domain(test_domain_of(0));
    p->sw = start("switch", "switch k10 --visible --hardware %d --proxy %d --mode shadow --watchdog 5 %s",
                  (int)test_domain_of(1), (int)test_domain_of(2), switch_options);
    p->operator_ = join_as_operator();
    add_reader(p->operator_->bus, "/understudy/shadow", usi_type_string, (us_qos){.is_reliable = true},
               hear_shadow, p);
    add_reader(p->operator_->bus, "/understudy/shadow/event", usi_type_string,
               (us_qos){.is_reliable = true, .is_transient_local = true, .depth = 1}, hear_event, p);
    WAIT_FOR(is_state(p, "ok"));
    return p;
}

static inline pair *start_pair(const char *hardware_options) { return start_pair_with(hardware_options, ""); }

static inline void end_pair(pair *p) {
    leave(p->operator_);
    end(p->sw);
    end(p->proxy);
    end(p->hardware);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

// `time` seconds of the hardware's own clock with one command.
static inline void drive_for(operator_ *o, double v, double w, double time) {
    heard h = listen(o);
    double from = h.stamp;
    command(o, v, 0, w, false);
    WAIT_DRIVING(o, h.stamp > from + time);
}

// Straight ahead, until both have their wheels straight and do the same; then at rest. At the end of a curve
// they may leave their wheels steered in one of two ways.
static inline outcome ask_switch(const char *question) {
    return run("switch k10 --proxy %d %s", (int)test_domain_of(2), question);
}

static inline void bring_together(pair *p) {
    operator_ *o = p->operator_;
    heard h;
    double until = clock_now() + PATIENCE;
    do {
        if (clock_now() > until) fail_msg("never together");
        drive_for(o, 0.3, 0, 1);
        const outcome a = ask_switch("--resync");
        // Both go on meanwhile: where one of them has to wait for a processor, they are too far apart.
        if (a.code != 3 || !strstr(a.err, "the states differ")) assert_code(a, 0);
        WAIT_DRIVING(o, !is_state(p, "degraded") && h.n > 0);
    } while (!is_state(p, "ok"));
    command(o, 0, 0, 0, false);
    WAIT_DRIVING(o, is_still(&h));
}

#endif
