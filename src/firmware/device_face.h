// Chips and instruments of a robot as the driver software of its computer sees them: bytes in, bytes out, by
// readings of the robot's own sensors. Each is a block of registers without clocks, sockets or allocation;
// docs/device-faces.md has what a driver may expect of it.
//
//     motor controller   like an LM629: commands, data and status bytes, trapezoid profiles, interrupt flags
//     converter          like a MAX186: a control byte, then twelve bits of one of eight channels
//     inertial unit      like a Crossbow VG: single letters, packets with a checksum
#ifndef USI_FIRMWARE_DEVICE_FACE_H
#define USI_FIRMWARE_DEVICE_FACE_H

#include "firmware/trapezoid.h"
#include "understudy/base.h"

// ---------------------------------------------------------------- motor controller

// What the chip wants of its motor; angles in rad, of the joint.
typedef enum usi_lm629_order_kind {
    USI_LM629_NOTHING,
    USI_LM629_OFF,
    USI_LM629_STOP,      // at once
    USI_LM629_VELOCITY,  // velocity
    USI_LM629_TRAPEZOID  // acceleration, velocity, position
} usi_lm629_order_kind;

typedef struct usi_lm629_order {
    usi_lm629_order_kind kind;
    double acceleration, velocity, position;
} usi_lm629_order;

typedef struct usi_lm629_reading {
    double time;                // s
    double position, velocity;  // rad, rad/s, by the encoder
} usi_lm629_reading;

typedef struct usi_lm629 {
    double counts;  // of the encoder for a turn
    double sample;  // s: 2048 periods of its clock
    usi_lm629_reading now;
    uint8_t flags;  // bits 6 to 1 of the status byte
    uint8_t mask;   // of host interrupts
    bool is_off, is_on_target, stops_on_error, acquires_index, has_breakpoint, is_velocity, is_forward;
    bool has_new_acceleration;
    int32_t index;                         // position of the last index pulse
    int32_t breakpoint, max_error;         // max_error 0: none
    double home;                           // counts: what is called 0
    int64_t turn;                          // the one in which the encoder is, for index pulses
    uint16_t control;                      // word of the last LTRJ
    int64_t acceleration, velocity, goal;  // as loaded: 2^-16 counts per sample (squared), counts
    int64_t set_velocity;                  // of the motion that was started
    double goal_counts;                    // of the motion that was started, from home
    usi_trapezoid profile;                 // rad
    double started;                        // s
    bool is_profiled;
    uint8_t command, n_due, n_written, data[16];  // a command that takes data
    uint8_t out[4], n_out, out_at;                // a command that gives data
} usi_lm629;

// clock in Hz: 6e6 for most boards.
void usi_lm629_init(usi_lm629 *chip, double counts, double clock, const usi_lm629_reading *now);
// New readings: flags are set by what they show. An order when an error turns the motor off.
usi_lm629_order usi_lm629_observe(usi_lm629 *chip, const usi_lm629_reading *now);
usi_lm629_order usi_lm629_write_command(usi_lm629 *chip, uint8_t byte);
usi_lm629_order usi_lm629_write_data(usi_lm629 *chip, uint8_t byte);
uint8_t usi_lm629_read_status(const usi_lm629 *chip);
uint8_t usi_lm629_read_data(usi_lm629 *chip);
bool usi_lm629_host_interrupt(const usi_lm629 *chip);  // its pin

// ---------------------------------------------------------------- converter

enum { USI_ADC_CHANNELS = 8 };
#define USI_ADC_REFERENCE 4.096  // V

typedef struct usi_adc {
    double volts[USI_ADC_CHANNELS];  // as they are; the caller writes them
    uint16_t shift;                  // what is still to be clocked out, from the top
} usi_adc;

// One byte in while another goes out, as on its bus.
uint8_t usi_adc_exchange(usi_adc *adc, uint8_t byte);

// ---------------------------------------------------------------- inertial unit

enum { USI_GYRO_PACKET = 22 };

typedef struct usi_gyro {
    double values[8];  // roll, pitch (rad), angular velocity (rad/s), specific force (m/s^2); the caller's
    double time;       // s
    double sent;       // s: of the last packet that nobody asked for
    bool is_continuous, is_angle;  // else scaled sensor values
} usi_gyro;

void usi_gyro_init(usi_gyro *gyro);
// A byte from the driver. How many bytes are answered; out has room for USI_GYRO_PACKET.
size_t usi_gyro_take(usi_gyro *gyro, uint8_t byte, uint8_t *out);
// New values have been written: a packet where it sends by itself, 100 times a second.
size_t usi_gyro_tick(usi_gyro *gyro, uint8_t *out);

#endif
