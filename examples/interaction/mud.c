// An interaction model of one's own, as a plug-in: mud.
//
// Something that sinks into mud meets a soft spring, and drag that grows with depth. Mud does not spring
// back: on the way out the force falls off within a small part of the depth. It never pulls. Sliding is
// easier the faster it is, because the film of water under the foot grows.
//
// The row of the interaction table gives the numbers:
//
//     <pair a="mud" b="foot" model="mud" stiffness="2e4">
//       <number key="drag" value="1e6"/>         N s/m^2: damping per depth
//       <number key="recoil" value="0.05"/>      part of the greatest depth that springs back
//       <number key="slow-speed" value="0.05"/>  m/s, at which friction is half way from static to kinetic
//     </pair>
#include <math.h>
#include <understudy/interaction.h>

static bool touch_mud(const us_touch *touch, double memory[US_TOUCH_MEMORY], us_touch_law *law, void *user) {
    (void)user;
    double k = touch->values->stiffness > 0 ? touch->values->stiffness : 2e4;
    double drag = us_property_number(touch->parameters, touch->n_parameter, "drag", 1e6);
    double recoil = us_property_number(touch->parameters, touch->n_parameter, "recoil", 0.05);
    double slow = us_property_number(touch->parameters, touch->n_parameter, "slow-speed", 0.05);
    if (!(drag >= 0 && recoil > 0 && recoil <= 1 && slow > 0)) return false;  // the step fails

    // memory[0] is the greatest depth so far: 0 for a new contact. It belongs to the world's state, so that
    // replays find it again.
    double depth = fmax(0, -touch->gap);
    if (depth > memory[0]) memory[0] = depth;

    // Going deeper: k d. Below the greatest depth the force falls to 0 within `recoil` of it; `law->force`
    // below 0 means no contact. The damper is at least the one of a depth of 0.1 mm: the two slopes must not
    // both be 0.
    double deepest = memory[0], stiffness = depth < deepest ? k / recoil : k;
    double damping = drag * fmax(depth, 1e-4);
    law->force = k * deepest - stiffness * (deepest + touch->gap) - damping * touch->normal_velocity;
    law->stiffness = stiffness;
    law->damping = damping;
    law->restitution = 0;

    // The anchor that holds while nothing slides is as soft as the mud.
    law->tangent_stiffness = k;
    law->tangent_damping = 2 * sqrt(k * fmax(touch->mass, 1e-3));

    // Friction by speed: static when slow, kinetic when fast. What is sideways in the velocity is what is not
    // along the normal.
    us_vec3 v = touch->velocity;
    double across = v.x * v.x + v.y * v.y + v.z * v.z - touch->normal_velocity * touch->normal_velocity;
    double speed = across > 0 ? sqrt(across) : 0;
    double s = touch->values->static_friction, d = touch->values->kinetic_friction;
    law->kinetic_friction = d + (s - d) * slow / (slow + speed);
    law->static_friction = s;
    return true;
}

// Every model of this library. The program asks for them when the scene says <plugin file="mud.so"/>.
// It is found by its name, which C++ would change.
#ifdef __cplusplus
extern "C"
#endif
    US_API const us_interaction *
    us_plugin_interactions(int32_t *out_n);
US_API const us_interaction *us_plugin_interactions(int32_t *out_n) {
    static const us_interaction models[] = {{US_INTERACTION_VERSION, "mud", NULL, touch_mud}};
    *out_n = (int32_t)(sizeof models / sizeof *models);
    return models;
}
