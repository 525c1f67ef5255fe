// When samples of a robot leave, and where to.
#include <math.h>
#include <string.h>

#include "base/rate.h"
#include "proxy/cameras.h"
#include "proxy/proxy__sample.h"
#include "proxy/rover_link.h"
#include "proxy/serial_face.h"

int64_t usi_time_of(const us_proxy *p, int64_t tick) {
    // In two parts, so that a step of whole nanoseconds loses nothing in days.
    double ns = p->step * 1e9, whole = nearbyint(ns), time = (double)tick * ns;
    // A tick of a stranger's message may be any number; no run comes to 146 years.
    if (!(fabs(time) < 4.6e18)) return time > 0 ? INT64_MAX / 2 : INT64_MIN / 2;
    return fabs(ns - whole) < 1e-6 ? tick * (int64_t)whole : (int64_t)llround(time);
}

// ---------------------------------------------------------------- one message

usi_sampling usi_sampling_begin(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    const int64_t time = usi_time_of(p, us_sim_get_tick(sim));
    r->stamp_offset = s->stamp_offset;
    return (usi_sampling){.p = p,
                          .r = r,
                          .sim = sim,
                          .s = s,
                          .firmware = usi_view_firmware(r, s),
                          .time = time,
                          .of_time = time,
                          .sensor = -1};
}

void *usi_sampling_take(usi_sampling *w, size_t n, size_t each) {
    size_t bytes = (n * each + 15) / 16 * 16;
    if (w->used + bytes > w->p->n_message) return NULL;
    void *memory = (char *)w->p->message + w->used;
    w->used += bytes;
    memset(memory, 0, bytes);
    return memory;
}

void usi_sampling_head(const usi_sampling *w, us_msg_header *header, const char *frame) {
    const int64_t stamp = usi_timing_stamp(w->p, w->r, w->of_time);
    header->stamp = (us_msg_time){(int32_t)(stamp / 1000000000), (uint32_t)(stamp % 1000000000)};
    header->frame_id = usi_text(frame);
}

// ---------------------------------------------------------------- sending

static bool encode(us_proxy *p, const us_message_type *type, const void *message, size_t *out_length) {
    if (!us_message_encode(type, message, p->bytes, p->n_byte, out_length)) return true;
    p->n_too_long++;
    return false;
}

us_status usi_proxy_send(us_proxy *p, us_writer *writer, int32_t channel, const us_message_type *type,
                         const void *message, int64_t time) {
    size_t length = 0;
    if (!encode(p, type, message, &length)) return US_ERR_LIMIT;
    p->n_sample++;
    if (p->record.sample && channel >= 0)
        p->record.sample(p->record.context, channel, time, time, p->bytes, length);
    if (writer) usi_outbox_put(p->outbox, writer, p->bytes, length, time, 0);
    usi_channel_count(p, channel);
    usi_channel_tap(p, channel, time, p->bytes, length);
    return US_OK;
}

static bool is_truth(const usi_robot *r, int32_t outlet) {
    return outlet < r->n_topic && r->model->topic[outlet].is_truth;
}

// A sample of a robot that leaves at `due` and is there now.
static void deliver(us_proxy *p, usi_robot *r, int32_t outlet, const void *bytes, size_t length, int64_t time,
                    int64_t due) {
    usi_outlet *out = &r->outlet[outlet];
    p->n_sample++;
    // Replies have no channel: statuses are recorded.
    if (p->record.sample && out->channel >= 0)
        p->record.sample(p->record.context, out->channel, time, due, bytes, length);
    if (out->writer)
        usi_outbox_put(p->outbox, out->writer, bytes, length, usi_timing_stamp(p, r, time),
                       usi_timing_due(p, r, time, is_truth(r, outlet)));
    out->is_sent = true;
    usi_channel_count(p, out->channel);
    usi_channel_tap(p, out->channel, time, bytes, length);
}

void usi_sampling_send(usi_sampling *w, const void *message) {
    size_t length = 0;
    if (encode(w->p, w->r->outlet[w->outlet].type, message, &length)) usi_sampling_pass(w, length);
}

void usi_sampling_pass(usi_sampling *w, size_t length) {
    us_proxy *p = w->p;
    usi_robot *r = w->r;
    const usi_outlet *out = &r->outlet[w->outlet];
    switch (w->sink) {
    case USI_SINK_TAP:
        usi_channel_tap(p, out->channel, w->time, p->bytes, length);
        return;
    case USI_SINK_RECORDER:
        p->record.sample(p->record.context, out->channel, w->time, w->time, p->bytes, length);
        return;
    default:
        break;
    }
    us_link_model link = usi_link_now(&r->model->network->downlink, w->s, us_sim_get_tick(w->sim));
    if (!is_truth(r, w->outlet) && (!usi_link_is_perfect(&link) || r->downlink_head.used > 0)) {
        // What arrives, and when, is what is sent and recorded.
        usi_link_send(&link, p->seed, 2 * (uint64_t)r->number + 1, &r->downlink, w->time, w->outlet, p->bytes,
                      length);
        return;
    }
    deliver(p, r, w->outlet, p->bytes, length, w->time, w->time);
}

// What the downlink lets arrive now.
static void send_arrived(us_proxy *p, usi_robot *r, int64_t time) {
    const usi_link_item *item;
    while (r->downlink.cap > 0 && (item = usi_link_first(&r->downlink, time))) {
        deliver(p, r, item->topic, item + 1, item->length, time, item->due);
        usi_link_drop_first(&r->downlink);
    }
}

// ---------------------------------------------------------------- what is due

// Whether anybody gets a sample of this topic. A radio carries all or nothing, for each takes the others'
// time.
static bool is_heard(const us_proxy *p, const usi_robot *r, const usi_robot_state *s, int64_t tick,
                     int32_t topic) {
    const int32_t channel = r->outlet[topic].channel;
    // What is true of sensors is many samples, and mostly nobody's; so are pictures.
    const usi_topic *t = &r->model->topic[topic];
    const bool is_asked = (t->is_truth && t->sensor >= 0) || usi_is_picture_source((int32_t)t->source);
    // Clouds of truth are as large as the robot's, and are made again by running a recording.
    const bool is_cloud = t->is_truth && t->sensor >= 0 && usi_is_frame_source((int32_t)t->source);
    if (p->record.sample && !is_cloud) return true;
    if (is_asked ? r->outlet[topic].writer && us_writer_n_match(r->outlet[topic].writer) > 0
                 : p->outbox != NULL)
        return true;
    if (!p->tap || channel < 0) return false;
    us_link_model link = usi_link_now(&r->model->network->downlink, s, tick);
    return atomic_load_explicit(&p->channel[channel].is_wanted, memory_order_relaxed) ||
           (!is_asked && !usi_link_is_perfect(&link));
}

// A sample has just arrived, or been taken: those that the topic's rate lets through. No sample is sent
// twice.
static bool is_reading_due(const us_proxy *p, const us_sim *sim, const usi_topic *t, int64_t phase) {
    const usi_sensor *k = &sim->model->sensor[t->sensor];
    const usi_sensor_state *s = &sim->now.sensor[t->sensor];
    const int64_t tick = us_sim_get_tick(sim);
    if (t->is_truth) return s->sampled == tick && (s->rate > 0 || usi_is_due(t->rate, p->step, phase));
    if (s->delivered != tick) return false;
    return usi_times_due(t->rate, p->step, s->tick + k->phase) !=
           usi_times_due(t->rate, p->step, s->tick_before + k->phase);
}

// Pictures of samples that were just taken are asked for where somebody wants them.
static void ask_for_pictures(us_proxy *p, const usi_robot *r, const us_sim *sim, const usi_robot_state *s) {
    const int64_t tick = us_sim_get_tick(sim);
    for (int32_t k = r->model->first_sensor; k < r->model->first_sensor + r->model->n_sensor; k++) {
        bool is_wanted = false;
        for (int32_t i = 0; i < r->n_topic; i++) {
            const usi_topic *t = &r->model->topic[i];
            is_wanted = is_wanted || (t->sensor == k && usi_is_picture_source((int32_t)t->source) &&
                                      r->outlet[i].channel >= 0 && is_heard(p, r, s, tick, i));
        }
        usi_cameras_notice(p->cameras, sim, k, is_wanted, p->record.sample != NULL);
    }
}

// A picture is made, and is one of those that the topic's rate lets through.
static bool is_picture_due(us_proxy *p, const us_sim *sim, const usi_topic *t) {
    if (!usi_cameras_is_ready(p->cameras, sim, t->sensor, p->record.sample != NULL)) return false;
    const int64_t phase = sim->model->sensor[t->sensor].phase;
    int64_t before;
    const int64_t tick = usi_cameras_tick(p->cameras, t->sensor, &before);
    return usi_times_due(t->rate, p->step, tick + phase) != usi_times_due(t->rate, p->step, before + phase);
}

static void forget_pictures(us_proxy *p, const usi_robot *r, const us_sim *sim) {
    for (int32_t k = r->model->first_sensor; k < r->model->first_sensor + r->model->n_sensor; k++) {
        if (usi_cameras_is_ready(p->cameras, sim, k, false)) usi_cameras_done(p->cameras, k);
    }
}

static bool is_sent_once(const usi_topic *t) { return us_topic_source_view((int32_t)t->source)->is_once; }

static void sample(usi_sampling *w, int32_t topic) {
    static usi_sample_function *const make[USI_SOURCE_COUNT] = {
        [USI_SOURCE_JOINT_STATES] = usi_sample_joint_states,
        [USI_SOURCE_ODOM] = usi_sample_odom,
        [USI_SOURCE_TF] = usi_sample_tf,
        [USI_SOURCE_TF_STATIC] = usi_sample_tf_static,
        [USI_SOURCE_IMU] = usi_sample_imu,
        [USI_SOURCE_ROBOT_DESCRIPTION] = usi_sample_description,
        [USI_SOURCE_BATTERY] = usi_sample_battery,
        [USI_SOURCE_DIAGNOSTICS] = usi_sample_diagnostics,
        [USI_SOURCE_TRUTH] = usi_sample_truth,
        [USI_SOURCE_MOTOR_GROUP] = usi_sample_motor_group,
        [USI_SOURCE_LOCOMOTOR] = usi_sample_locomotor,
        [USI_SOURCE_POSE_ESTIMATOR] = usi_sample_pose_estimator,
        [USI_SOURCE_NAVIGATOR] = usi_sample_navigator,
        [USI_SOURCE_POINTS] = usi_sample_points,
        [USI_SOURCE_SCAN] = usi_sample_scan,
        [USI_SOURCE_READINGS] = usi_sample_readings,
        [USI_SOURCE_IMAGE] = usi_sample_image,
        [USI_SOURCE_CAMERA_INFO] = usi_sample_camera_info,
        [USI_SOURCE_DEPTH] = usi_sample_depth};
    const usi_topic *t = &w->r->model->topic[topic];
    w->used = 0;
    w->outlet = topic;
    w->sensor = t->sensor;
    w->is_truth = t->is_truth;
    w->of_time = usi_is_picture_source((int32_t)t->source)
                     ? usi_time_of(w->p, usi_cameras_tick(w->p->cameras, t->sensor, NULL))
                 : usi_is_frame_source((int32_t)t->source)
                     ? usi_lidar_sample_time(w->sim, w->p->model->sensor[t->sensor].lidar)
                 : t->sensor < 0 ? w->time
                                 : usi_time_of(w->p, t->is_truth ? w->sim->now.sensor[t->sensor].sampled
                                                                 : w->sim->now.sensor[t->sensor].tick);
    make[t->source](w);
}

void usi_robot_repeat(us_proxy *p, usi_robot *r, const us_sim *sim, const usi_robot_state *s, usi_sink sink) {
    usi_sampling w = usi_sampling_begin(p, r, sim, s);
    w.sink = sink;
    for (int32_t i = 0; i < r->n_topic; i++) {
        if (is_sent_once(&r->model->topic[i]) && r->outlet[i].is_sent) sample(&w, i);
    }
    usi_interface_publish(p, r, sim, s, true, sink);
}

void usi_robot_publish(us_proxy *p, usi_robot *r, us_sim *sim, const usi_robot_state *s, bool is_first) {
    const int64_t tick = us_sim_get_tick(sim);
    usi_sampling w = usi_sampling_begin(p, r, sim, s);
    const int64_t phase = tick + usi_robot_phase(r->number);
    const bool is_up = usi_is_up(s);
    // A computer that has just started sends anew what is sent once.
    is_first = is_first || (s->faults.boot_tick != 0 && s->faults.boot_tick == tick);
    if (is_first && is_up) usi_robot_log_start(p, r, sim, s);
    if (p->cameras) ask_for_pictures(p, r, sim, s);
    for (int32_t i = 0; i < r->n_topic; i++) {
        const usi_topic *t = &r->model->topic[i];
        // A computer that is off or starts sends nothing. Where the robot really is does not depend on it.
        if (r->outlet[i].channel < 0 || (!is_up && !t->is_truth)) continue;
        // Readings leave when they have arrived.
        const bool is_frame = usi_is_frame_source((int32_t)t->source);
        const bool is_picture = usi_is_picture_source((int32_t)t->source);
        const bool is_now = is_picture                ? is_picture_due(p, sim, t)
                            : is_frame && t->is_truth ? usi_lidar_truth_is_due(sim, t->sensor)
                            : is_frame                ? usi_lidar_is_due(sim, t->sensor, t->rate)
                            : t->sensor >= 0          ? is_reading_due(p, sim, t, phase)
                                                      : usi_is_due(t->rate, p->step, phase);
        const bool is_due = is_sent_once(t) ? is_first : is_now && is_heard(p, r, s, tick, i);
        if (is_due) sample(&w, i);
    }
    if (p->cameras) forget_pictures(p, r, sim);
    if (is_up) usi_interface_publish(p, r, sim, s, is_first, USI_SINK_ALL);
    send_arrived(p, r, w.time);
}

// ---------------------------------------------------------------- all robots

static void publish_clock(us_proxy *p, int64_t time) {
    us_msg_clock m = {{(int32_t)(time / 1000000000), (uint32_t)(time % 1000000000)}};
    if (p->clock || p->record.sample || p->tap)
        usi_proxy_send(p, p->clock, p->clock_channel, usi_type_clock, &m, time);
}

void usi_proxy_repeat_clock(us_proxy *p, const us_sim *sim) {
    if (!p->clock || p->owes_all || us_sim_view_model(sim) != p->model) return;
    const int64_t time = usi_time_of(p, us_sim_get_tick(sim));
    const us_msg_clock m = {{(int32_t)(time / 1000000000), (uint32_t)(time % 1000000000)}};
    size_t length = 0;
    if (!encode(p, usi_type_clock, &m, &length)) return;
    usi_outbox_put(p->outbox, p->clock, p->bytes, length, time, 0);
    usi_outbox_ring(p->outbox);
}

void us_proxy_publish(us_proxy *p, us_sim *sim) {
    if (us_sim_view_model(sim) != p->model) return;
    int64_t tick = us_sim_get_tick(sim), time = usi_time_of(p, tick), n = p->n_sample;
    usi_notice_jump(p, tick);
    bool is_first = p->owes_all, is_heard = p->outbox || p->record.sample || p->tap,
         owes_record = p->owes_record && !is_first;
    p->owes_all = p->owes_record = false;
    usi_timing_follow(p, time, is_first);
    if (is_first || usi_is_due(p->clock_rate, p->step, tick)) publish_clock(p, time);
    for (int32_t i = 0; i < p->n_robot; i++) {
        usi_robot *r = &p->robot[i];
        const usi_robot_state *s = usi_view_state(r, sim);
        // What is sent once leaves in any case: somebody may ask for it later.
        if (!s || r->is_ghost || (!is_heard && !is_first && r->downlink_head.used == 0)) continue;
        if (owes_record && p->record.sample) usi_robot_repeat(p, r, sim, s, USI_SINK_RECORDER);
        usi_robot_publish(p, r, sim, s, is_first);
        if (r->motors && usi_is_up(s) && usi_is_due(r->model->network->motor_rate, p->step, tick))
            usi_link_publish(r, sim, s);
        if (r->packet && usi_is_up(s)) usi_lidar_packets_send(p, r, sim);
        if (usi_is_up(s)) usi_faces_observe(r->faces, r, sim, s);
    }
    usi_cameras_start(p->cameras);
    usi_proxy_tend(p, sim);
    if (p->outbox && p->n_sample != n) usi_outbox_ring(p->outbox);
}
