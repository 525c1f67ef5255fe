// Lamps by their parameters: the order of those in the kind "lamp" (instrument/lamp_kind.c).
#ifndef USI_SPEC_LAMP_DEVICE_H
#define USI_SPEC_LAMP_DEVICE_H

typedef enum usi_lamp_parameter {
    USI_LAMP_POWER,
    USI_LAMP_CONE,
    USI_LAMP_RED,  // green and blue behind it
    USI_LAMP_GREEN,
    USI_LAMP_BLUE,
    USI_LAMP_ON,
    USI_LAMP_N_PARAMETER
} usi_lamp_parameter;

#endif
