// The interaction models that the library brings, and how every model is asked.
#ifndef USI_CONTACT_INTERACTION_H
#define USI_CONTACT_INTERACTION_H

#include "model/model.h"
#include "understudy/interaction.h"

// "compliant": a linear spring and damper along the normal, an anchored one across it. Writes every member of
// the law.
void usi_touch_compliant(const us_touch *touch, us_touch_law *law);

// "spring-damper": force k d^n (1 - a v_n). `law` holds what "compliant" says. False when its parameter
// "exponent" is outside 1 .. 4, the restitution outside 0 .. 1 or the reference speed not greater than 0.
bool usi_touch_spring_damper(const us_touch *touch, us_touch_law *law);

// Asks model number `index` of a us_model's interactions, of which `model` is the element. False when it
// cannot say, or says what the solvers cannot use: a number that is not finite, a negative slope or friction,
// two slopes of 0, or an anchor without stiffness.
bool usi_touch_ask(int32_t index, const us_interaction *model, const us_touch *touch,
                   double memory[US_TOUCH_MEMORY], us_touch_law *law);

#endif
