// The ASCII motor protocol through the switch: one port for the operators, whoever plays.
//
// Each client of the port has a connection of its own to each of the two sources. Its messages go to the
// source in control; answers come back from the source that was asked, states from the one whose outputs go
// out. A change of control touches no connection.
#ifndef USI_SWITCH_MOTOR_RELAY_H
#define USI_SWITCH_MOTOR_RELAY_H

#include "understudy/switch.h"

typedef struct usi_motor_relay usi_motor_relay;

// US_ERR_IO when the port cannot be opened, US_ERR_VALUE for an address that is none.
us_status usi_motor_relay_open(us_switch *sw, const us_switch_motors *def, usi_motor_relay **out_relay,
                               us_error *err);
void usi_motor_relay_close(usi_motor_relay *relay);  // NULL is allowed
int32_t usi_motor_relay_port(const usi_motor_relay *relay);
// Control or outputs changed. From any thread; NULL is allowed.
void usi_motor_relay_wake(usi_motor_relay *relay);

#endif
