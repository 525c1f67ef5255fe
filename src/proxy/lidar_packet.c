// Lidars that send their maker's packets: by UDP to a program on this machine, as groups of beams are fired.
//
// A data packet has twelve blocks, and leaves when it is full; a position packet leaves ten times a second.
// What is under way in a packet is not state: after a jump of time another one is begun.
#include <string.h>

#include "model/lidars.h"
#include "proxy/proxy__sample.h"
#include "sim/sim.h"
#include "wire/velodyne.h"

typedef struct usi_lidar_packet {
    int64_t next;      // group
    int64_t position;  // of the last position packet, in tenths of a second
    int64_t time;      // ns, of the first block
    int32_t n_block;
    uint8_t data[USI_VELODYNE_DATA];
} usi_lidar_packet;

us_status usi_lidar_packets_open(us_proxy *p, usi_robot *r, us_error *err) {
    const us_model *m = p->model;
    int32_t n = 0;
    for (int32_t i = 0; i < r->model->n_sensor; i++) {
        const usi_sensor *k = &m->sensor[r->model->first_sensor + i];
        n += k->kind->is_frame && m->lidar[k->lidar].def->packet_port != 0;
    }
    if (n == 0) return US_OK;
    r->packet = usi_arena_alloc(&p->arena, (size_t)r->model->n_sensor * sizeof *r->packet,
                                _Alignof(usi_lidar_packet));
    if (!r->packet)
        return us_error_set(err, US_ERR_MEMORY, NULL, "free memory", "no memory left for packets of lidars");
    memset(r->packet, 0, (size_t)r->model->n_sensor * sizeof *r->packet);
    r->n_packet = r->model->n_sensor;
    if (usi_outbox_open_datagrams(p->outbox)) return US_OK;
    return us_error_set(err, US_ERR_IO, NULL, "let more files be open (ulimit -n)",
                        "there is no socket for packets of lidars");
}

// Of a dual firing the last return, and the other one.
static const float *return_of(const usi_lidar *l, const float (*point)[4], int32_t ring, bool is_last) {
    const float *a = point[ring], *b = point[l->n_ring + ring];
    if (!isfinite(b[0])) return a;
    const bool is_a_last = a[0] * a[0] + a[1] * a[1] + a[2] * a[2] > b[0] * b[0] + b[1] * b[1] + b[2] * b[2];
    return is_a_last == is_last ? a : b;
}

static void put_group(usi_lidar_packet *k, const usi_lidar *l, const float (*point)[4], int32_t block,
                      int32_t channel, bool is_last) {
    const us_lidar_def *d = l->def;
    for (int32_t i = 0; i < d->n_beam; i++) {
        const int32_t ring = l->beam[i].ring;
        const float *p = d->returns == US_LIDAR_DUAL ? return_of(l, point, ring, is_last) : point[ring];
        const double x = (double)p[0], y = (double)p[1], z = (double)p[2];
        if (isfinite(x))
            usi_velodyne_return(k->data, block, channel + i, d->packet_device, sqrt(x * x + y * y + z * z),
                                (double)p[3]);
    }
}

static void send_data(us_proxy *p, const usi_robot *r, usi_lidar_packet *k, const us_lidar_def *d) {
    static const int32_t mode[] = {[US_LIDAR_STRONGEST] = USI_VELODYNE_STRONGEST,
                                   [US_LIDAR_LAST] = USI_VELODYNE_LAST,
                                   [US_LIDAR_DUAL] = USI_VELODYNE_DUAL};
    usi_velodyne_finish(k->data, usi_timing_stamp(p, r, k->time), mode[d->returns], d->packet_device);
    usi_outbox_put_datagram(p->outbox, d->packet_address, d->packet_port, k->data, USI_VELODYNE_DATA);
    k->n_block = 0;
}

// One group into the packet. Two groups of 16 beams share a block.
static void add_group(us_proxy *p, const usi_robot *r, usi_lidar_packet *k, const usi_lidar *l, int64_t group,
                      const float (*point)[4]) {
    const us_lidar_def *d = l->def;
    const int32_t n_each = d->returns == US_LIDAR_DUAL ? 2 : 1, per_block = USI_VELODYNE_CHANNELS / d->n_beam,
                  part = (int32_t)(group % per_block);
    const double time = usi_lidar_group_time(l, group);
    // A block begins with its first group.
    if (part != 0 && k->n_block == 0) return;
    if (part == 0) {
        const double into = time - (double)usi_lidar_turn_of(l, group) * l->turn;
        if (k->n_block == 0) k->time = llround(1e9 * time);
        for (int32_t i = 0; i < n_each; i++)
            usi_velodyne_block(k->data, k->n_block + i, d->start + l->spin * into);
        k->n_block += n_each;
    }
    for (int32_t i = 0; i < n_each; i++)
        put_group(k, l, point, k->n_block - n_each + i, part * d->n_beam, i == 0);
    if (part == per_block - 1 && k->n_block + n_each > USI_VELODYNE_BLOCKS) send_data(p, r, k, d);
}

static void send_position(us_proxy *p, const usi_robot *r, usi_lidar_packet *k, const us_lidar_def *d,
                          int64_t time) {
    uint8_t packet[USI_VELODYNE_POSITION];
    const int64_t tenth = time / 100000000;
    if (tenth == k->position) return;
    k->position = tenth;
    usi_velodyne_position(packet, usi_timing_stamp(p, r, time));
    usi_outbox_put_datagram(p->outbox, d->packet_address, USI_VELODYNE_POSITION_PORT, packet, sizeof packet);
}

void usi_lidar_packets_send(us_proxy *p, usi_robot *r, const us_sim *sim) {
    const us_model *m = p->model;
    const double now = (double)us_sim_get_tick(sim) * m->step;
    bool is_any = false;
    for (int32_t i = 0; i < r->n_packet && i < r->model->n_sensor; i++) {
        const usi_sensor *s = &m->sensor[r->model->first_sensor + i];
        if (!s->kind->is_frame || m->lidar[s->lidar].def->packet_port == 0) continue;
        const usi_lidar *l = &m->lidar[s->lidar];
        usi_lidar_packet *k = &r->packet[i];
        const int64_t end = (int64_t)floor((now - l->last_beam) / l->period) + 1;
        // At the start, after a jump and after silence: from here on.
        if (k->next > end || k->next < end - l->n_column) {
            k->next = end;
            k->n_block = 0;
        }
        for (; k->next < end; k->next++) {
            const float(*point)[4] = usi_sim_lidar_group(sim, s->lidar, k->next);
            if (point) {
                add_group(p, r, k, l, k->next, point);
            } else {
                k->n_block = 0;
            }
        }
        send_position(p, r, k, l->def, usi_time_of(p, us_sim_get_tick(sim)));
        is_any = true;
    }
    if (is_any) usi_outbox_ring(p->outbox);
}
