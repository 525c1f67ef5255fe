// A motor controller like the LM629: an eight-bit port with a command and a data side.
//
//     driver   command LTRJ, data: control word, then what it says      ->  loaded, not yet in force
//              command STT                                              ->  the motor moves
//              status byte                                              ->  7 off, 6 breakpoint, 5 error,
//                                                    4 wraparound, 3 index, 2 complete, 1 command error, 0
//                                                    busy
//
// Positions are counts from home, velocities 2^-16 counts per sample, accelerations 2^-16 counts per sample
// squared, most significant byte first. It is never busy. The loop around the motor is that of the robot's
// drive: filter coefficients are taken and have no effect.
#include <math.h>
#include <string.h>

#include "firmware/device_face.h"

enum {
    RESET = 0x00,
    STT = 0x01,
    DFH = 0x02,
    SIP = 0x03,
    UDF = 0x04,
    PORT8 = 0x05,
    PORT12 = 0x06,
    RDDV = 0x07,
    RDDP = 0x08,
    RDIP = 0x09,
    RDRP = 0x0A,
    RDRV = 0x0B,
    RDSIGS = 0x0C,
    RDSUM = 0x0D,
    LPES = 0x1A,
    LPEI = 0x1B,
    MSKI = 0x1C,
    RSTI = 0x1D,
    LFIL = 0x1E,
    LTRJ = 0x1F,
    SBPA = 0x20,
    SBPR = 0x21,
};

// Of the status byte.
enum {
    IS_OFF = 0x80,
    BREAKPOINT = 0x40,
    POSITION_ERROR = 0x20,
    INDEX_PULSE = 0x08,
    COMPLETE = 0x04,
    COMMAND_ERROR = 0x02,
    INTERRUPTS = 0x7E,
};

// Of the control word of LTRJ.
enum {
    IS_FORWARD = 0x1000,
    IS_VELOCITY = 0x0800,
    STOPS_SMOOTHLY = 0x0400,
    STOPS_ABRUPTLY = 0x0200,
    TURNS_OFF = 0x0100,
    LOADS_ACCELERATION = 0x20,
    ADDS_ACCELERATION = 0x10,
    LOADS_VELOCITY = 0x08,
    ADDS_VELOCITY = 0x04,
    LOADS_POSITION = 0x02,
    ADDS_POSITION = 0x01,
};

static const double TURN = 6.28318530717958647693;  // rad
static const double FRACTION = 65536;               // of a count, in velocities and accelerations
static const int64_t MAX_POSITION = 0x3FFFFFFF;

static double to_counts(const usi_lm629 *c, double angle) { return angle * c->counts / TURN; }
static double to_angle(const usi_lm629 *c, double counts) { return counts * TURN / c->counts; }
static double position_of(const usi_lm629 *c) { return floor(to_counts(c, c->now.position)) - c->home; }

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

static usi_lm629_order nothing(void) { return (usi_lm629_order){.kind = USI_LM629_NOTHING}; }

// ---------------------------------------------------------------- motion

// Where the profile has the motor: counts from home, and counts per sample.
static void desired(const usi_lm629 *c, double *out_position, double *out_velocity) {
    *out_position = position_of(c);
    *out_velocity = 0;
    if (c->is_off) return;
    if (c->is_velocity && !c->is_on_target) {
        *out_velocity = (c->is_forward ? 1 : -1) * (double)c->set_velocity / FRACTION;
    } else if (c->is_profiled) {
        const usi_trapezoid_point p = usi_trapezoid_at(&c->profile, c->now.time - c->started);
        *out_position = to_counts(c, p.position) - c->home;
        *out_velocity = to_counts(c, p.velocity) * c->sample;
    }
}

static void complete(usi_lm629 *c) {
    c->is_on_target = true;
    c->flags |= COMPLETE;
}

static usi_lm629_order turn_off(usi_lm629 *c) {
    c->is_off = true;
    c->is_profiled = c->is_velocity = false;
    complete(c);
    return (usi_lm629_order){.kind = USI_LM629_OFF};
}

// To a position, from how the motor moves now.
static usi_lm629_order start_profile(usi_lm629 *c, double goal) {
    const double samples = 1 / c->sample,
                 acceleration = to_angle(c, (double)c->acceleration / FRACTION) * samples * samples,
                 velocity = to_angle(c, (double)c->velocity / FRACTION) * samples,
                 position = to_angle(c, goal + c->home);
    // Without acceleration or velocity it never gets there.
    if (usi_trapezoid_init(&c->profile, acceleration, velocity, c->now.position, c->now.velocity, position))
        return nothing();
    c->goal_counts = goal;
    c->started = c->now.time;
    c->is_profiled = true;
    return (usi_lm629_order){USI_LM629_TRAPEZOID, acceleration, velocity, position};
}

static usi_lm629_order start(usi_lm629 *c) {
    // The acceleration may not change while a trajectory is under way.
    if (c->has_new_acceleration && !c->is_on_target && !c->is_off) {
        c->flags |= COMMAND_ERROR;
        return nothing();
    }
    c->has_new_acceleration = false;
    if (c->control & TURNS_OFF) return turn_off(c);
    const bool was_velocity = c->is_velocity;
    c->is_off = c->is_on_target = false;
    c->is_velocity = false;
    if (c->control & STOPS_ABRUPTLY) {
        c->is_profiled = false;
        complete(c);
        return (usi_lm629_order){.kind = USI_LM629_STOP};
    }
    if (c->control & STOPS_SMOOTHLY) {
        const double speed = to_counts(c, c->now.velocity) * c->sample,
                     way = c->acceleration > 0
                               ? speed * fabs(speed) / (2 * (double)c->acceleration / FRACTION)
                               : 0;
        if (was_velocity && c->velocity == 0) c->velocity = c->set_velocity;
        return start_profile(c, position_of(c) + way);
    }
    c->set_velocity = c->velocity;
    if (!(c->control & IS_VELOCITY)) return start_profile(c, (double)c->goal);
    c->is_velocity = true;
    c->is_profiled = false;
    c->is_forward = c->control & IS_FORWARD;
    const double velocity = to_angle(c, (double)c->velocity / FRACTION) / c->sample;
    return (usi_lm629_order){.kind = USI_LM629_VELOCITY, .velocity = c->is_forward ? velocity : -velocity};
}

// ---------------------------------------------------------------- readings

static void watch_index(usi_lm629 *c) {
    const int64_t turn = (int64_t)floor(c->now.position / TURN);
    if (turn != c->turn && c->acquires_index) {
        // The pulse stands where one turn ends and the next begins.
        const double at = c->counts * (double)(turn > c->turn ? turn : c->turn) - c->home;
        c->index = (int32_t)clamp((int64_t)at, -MAX_POSITION - 1, MAX_POSITION);
        c->acquires_index = false;
        c->flags |= INDEX_PULSE;
    }
    c->turn = turn;
}

usi_lm629_order usi_lm629_observe(usi_lm629 *c, const usi_lm629_reading *now) {
    const double before = position_of(c);
    c->now = *now;
    const double here = position_of(c);
    watch_index(c);
    const double at = (double)c->breakpoint;
    if (c->has_breakpoint && ((before <= at && here >= at) || (before >= at && here <= at))) {
        c->flags |= BREAKPOINT;
        c->has_breakpoint = false;
    }
    if (c->is_profiled && !c->is_on_target && now->time - c->started >= c->profile.duration) complete(c);
    double goal, speed;
    desired(c, &goal, &speed);
    if (c->max_error > 0 && fabs(goal - here) > (double)c->max_error) {
        c->flags |= POSITION_ERROR;
        if (c->stops_on_error && !c->is_off) return turn_off(c);
    }
    return nothing();
}

// ---------------------------------------------------------------- commands with data

static int64_t read_number(const uint8_t *bytes, int n) {
    uint32_t u = 0;
    for (int i = 0; i < n; i++)
        u = u << 8 | bytes[i];
    return n == 4 ? (int64_t)(int32_t)u : (int64_t)u;
}

// Of LTRJ and LFIL: how many bytes follow the control word.
static uint8_t count_more(uint8_t command, uint16_t control) {
    int n = 0;
    if (command == LTRJ) {
        n = 4 * (((control & LOADS_ACCELERATION) != 0) + ((control & LOADS_VELOCITY) != 0) +
                 ((control & LOADS_POSITION) != 0));
    } else {
        for (int i = 0; i < 4; i++)
            n += control >> i & 1 ? 2 : 0;
    }
    return (uint8_t)n;
}

static void load_trajectory(usi_lm629 *c) {
    const uint8_t *at = c->data + 2;
    c->control = (uint16_t)read_number(c->data, 2);
    if (c->control & LOADS_ACCELERATION) {
        const int64_t x = read_number(at, 4) + (c->control & ADDS_ACCELERATION ? c->acceleration : 0);
        c->acceleration = clamp(x, 0, MAX_POSITION);
        c->has_new_acceleration = true;
        at += 4;
    }
    if (c->control & LOADS_VELOCITY) {
        const int64_t x = read_number(at, 4) + (c->control & ADDS_VELOCITY ? c->velocity : 0);
        c->velocity = clamp(x, 0, MAX_POSITION);
        at += 4;
    }
    if (c->control & LOADS_POSITION) {
        const int64_t x = read_number(at, 4) + (c->control & ADDS_POSITION ? (int64_t)c->goal_counts : 0);
        c->goal = clamp(x, -MAX_POSITION - 1, MAX_POSITION);
    }
}

static void take_data(usi_lm629 *c) {
    const int64_t word = read_number(c->data, 2);
    switch (c->command) {
    case LTRJ:
        load_trajectory(c);
        break;
    case LPEI:
    case LPES:
        c->max_error = (int32_t)(word & 0x7FFF);
        c->stops_on_error = c->command == LPES;
        break;
    case SBPA:
    case SBPR:
        c->breakpoint =
            (int32_t)clamp(read_number(c->data, 4) + (c->command == SBPR ? (int64_t)c->goal_counts : 0),
                           -MAX_POSITION - 1, MAX_POSITION);
        c->has_breakpoint = true;
        break;
    case MSKI:
        c->mask = (uint8_t)(word & INTERRUPTS);
        break;
    case RSTI:
        c->flags &= (uint8_t)word;
        break;
    default:
        break;
    }
}

usi_lm629_order usi_lm629_write_data(usi_lm629 *c, uint8_t byte) {
    if (c->n_due == 0) {
        c->flags |= COMMAND_ERROR;
        return nothing();
    }
    c->data[c->n_written++] = byte;
    c->n_due--;
    const bool is_word = c->command == LTRJ || c->command == LFIL;
    if (is_word && c->n_written == 2) c->n_due = count_more(c->command, (uint16_t)read_number(c->data, 2));
    if (c->n_due == 0) take_data(c);
    return nothing();
}

// ---------------------------------------------------------------- commands that report

static void give(usi_lm629 *c, int64_t value, int n) {
    const uint32_t u = (uint32_t)value;
    for (int i = 0; i < n; i++)
        c->out[i] = (uint8_t)(u >> 8 * (n - 1 - i));
    c->n_out = (uint8_t)n;
    c->out_at = 0;
}

static int64_t whole(double x) { return clamp((int64_t)fmax(-2e9, fmin(2e9, x)), INT32_MIN, INT32_MAX); }

static int64_t signals_of(const usi_lm629 *c) {
    int64_t s = (usi_lm629_read_status(c) & 0xFE) | (c->acquires_index ? 1 : 0) | 0x0100;  // eight-bit output
    s |= usi_lm629_host_interrupt(c) ? 0x8000 : 0;
    s |= c->has_new_acceleration ? 0x4000 : 0;
    s |= c->is_velocity && c->is_forward ? 0x1000 : 0;
    s |= c->is_velocity ? 0x0800 : 0;
    s |= c->is_on_target ? 0x0400 : 0;
    s |= c->stops_on_error ? 0x0200 : 0;
    return s;
}

// False: it is none of these.
static bool report(usi_lm629 *c, uint8_t command) {
    double position, velocity;
    desired(c, &position, &velocity);
    switch (command) {
    case RDDP:
        give(c, whole(floor(position)), 4);
        return true;
    case RDDV:
        give(c, whole(velocity * FRACTION), 4);
        return true;
    case RDRP:
        give(c, whole(position_of(c)), 4);
        return true;
    case RDRV:
        give(c, whole(floor(to_counts(c, c->now.velocity) * c->sample)), 2);
        return true;
    case RDIP:
        give(c, c->index, 4);
        return true;
    case RDSIGS:
        give(c, signals_of(c), 2);
        return true;
    case RDSUM:
        give(c, 0, 2);
        return true;
    default:
        return false;
    }
}

// ---------------------------------------------------------------- all

void usi_lm629_init(usi_lm629 *c, double counts, double clock, const usi_lm629_reading *now) {
    *c = (usi_lm629){
        .counts = counts, .sample = 2048 / clock, .now = *now, .is_off = true, .is_on_target = true};
    c->flags = COMPLETE;
    c->home = floor(to_counts(c, now->position));
    c->turn = (int64_t)floor(now->position / TURN);
}

static void define_home(usi_lm629 *c) {
    const double shift = position_of(c);
    c->home += shift;
    c->goal_counts -= shift;
}

static uint8_t count_data(uint8_t command) {
    switch (command) {
    case LPES:
    case LPEI:
    case MSKI:
    case RSTI:
    case LFIL:
    case LTRJ:
        return 2;
    case SBPA:
    case SBPR:
        return 4;
    default:
        return 0;
    }
}

usi_lm629_order usi_lm629_write_command(usi_lm629 *c, uint8_t byte) {
    const usi_lm629_reading now = c->now;
    c->n_out = c->out_at = c->n_written = 0;
    c->command = byte;
    c->n_due = count_data(byte);
    if (c->n_due > 0 || report(c, byte)) return nothing();
    switch (byte) {
    case RESET:
        usi_lm629_init(c, c->counts, 2048 / c->sample, &now);
        return (usi_lm629_order){.kind = USI_LM629_OFF};
    case STT:
        return start(c);
    case DFH:
        define_home(c);
        return nothing();
    case SIP:
        c->acquires_index = true;
        return nothing();
    case UDF:
    case PORT8:
    case PORT12:
        return nothing();
    default:
        c->flags |= COMMAND_ERROR;
        return nothing();
    }
}

uint8_t usi_lm629_read_status(const usi_lm629 *c) { return (uint8_t)((c->is_off ? IS_OFF : 0) | c->flags); }

uint8_t usi_lm629_read_data(usi_lm629 *c) {
    if (c->out_at < c->n_out) return c->out[c->out_at++];
    c->flags |= COMMAND_ERROR;
    return 0;
}

bool usi_lm629_host_interrupt(const usi_lm629 *c) { return (c->flags & c->mask & INTERRUPTS) != 0; }
