// Any bytes to the device faces of a robot, as a driver's, with readings that move in between: orders are
// finite, answers fit, and nothing overflows.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/device_face.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool is_so) {
    if (!is_so) abort();
}

static void check_order(const usi_lm629_order *o) {
    must((unsigned)o->kind <= (unsigned)USI_LM629_TRAPEZOID);
    if (o->kind == USI_LM629_VELOCITY) must(isfinite(o->velocity));
    if (o->kind == USI_LM629_TRAPEZOID)
        must(isfinite(o->acceleration) && isfinite(o->velocity) && isfinite(o->position));
}

// Small and large movements to either side.
static usi_lm629_reading move(usi_lm629_reading now, uint8_t value) {
    const double way = ldexp((value & 15) - 7.5, (value >> 4) - 4);
    now.time += 0.001;
    now.position = fmin(fmax(now.position + way, -1e6), 1e6);
    now.velocity = way / 0.001;
    return now;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    usi_lm629_reading now = {.time = 1, .position = 0.1};
    usi_lm629 chip;
    usi_adc adc = {.shift = 0};
    usi_gyro gyro;
    uint8_t out[USI_GYRO_PACKET];
    usi_lm629_init(&chip, 2000, 6e6, &now);
    usi_gyro_init(&gyro);
    for (size_t i = 0; i + 2 <= size; i += 2) {
        const uint8_t value = data[i + 1];
        usi_lm629_order order = {.kind = USI_LM629_NOTHING};
        size_t n = 0;
        switch (data[i] % 8) {
        case 0:
            order = usi_lm629_write_command(&chip, value);
            break;
        case 1:
            order = usi_lm629_write_data(&chip, value);
            break;
        case 2:
            (void)usi_lm629_read_data(&chip);
            break;
        case 3:
            must(usi_lm629_host_interrupt(&chip) == ((usi_lm629_read_status(&chip) & chip.mask & 0x7e) != 0));
            break;
        case 4:
            now = move(now, value);
            order = usi_lm629_observe(&chip, &now);
            break;
        case 5:
            adc.volts[value % USI_ADC_CHANNELS] = now.position;
            (void)usi_adc_exchange(&adc, value);
            break;
        case 6:
            n = usi_gyro_take(&gyro, value, out);
            break;
        default:
            gyro.time += 0.004;
            gyro.values[value % 8] = now.velocity;
            n = usi_gyro_tick(&gyro, out);
        }
        check_order(&order);
        must(n <= USI_GYRO_PACKET);
    }
    return 0;
}
