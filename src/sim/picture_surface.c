// What surfaces of materials look like: properties of <material> that cameras read.
#include <math.h>
#include <string.h>

#include "model/model.h"
#include "sim/sim__picture.h"

static us_status fail(const us_material_def *d, const char *remedy, const char *message, us_error *err) {
    const us_place place = {d->file, d->line, 0, d->name};
    return us_error_set(err, US_ERR_VALUE, &place, remedy, "%s", message);
}

static us_status read_law(const us_material_def *d, const us_property *p, usi_reflector *out, us_error *err) {
    static const char *const names[] = {"lambert", "lommel-seeliger", "hapke"};
    for (int i = 0; p->type == US_PROPERTY_STRING && i < 3; i++) {
        out->reflection = (usi_reflection)i;
        if (strcmp(p->text, names[i]) == 0) return US_OK;
    }
    return fail(d, "write a <string> that is lambert, lommel-seeliger or hapke",
                "reflection: this is no law of reflection", err);
}

us_status usi_picture_surface_read(const us_material_def *d, usi_picture_surface *out, us_error *err) {
    static const double ground = 0.25;
    // Of regolith on the Moon.
    *out = (usi_picture_surface){.ground = ground, .law = {USI_LAMBERT, 0.25, 1, 0.06}};
    double texture = -1;
    const struct {
        const char *key;
        double low, high, *to;
        const char *remedy, *message;
    } rows[] = {{"texture", 0, 1, &texture, "write a <number> from 0 to 1",
                 "texture: this is no contrast of a texture"},
                {"hapke-b", -0.95, 0.95, &out->law.b, "write a <number> from -0.95 to 0.95",
                 "hapke-b: this is no asymmetry"},
                {"hapke-b0", 0, 10, &out->law.b0, "write a <number> from 0 to 10",
                 "hapke-b0: this is no strength of a surge"},
                {"hapke-h", 1e-4, 10, &out->law.h, "write a <number> from 0.0001 to 10",
                 "hapke-h: this is no width of a surge"}};
    for (int32_t i = 0; i < d->n_property; i++) {
        const us_property *p = &d->properties[i];
        if (strcmp(p->key, "reflection") == 0) {
            us_status status = read_law(d, p, &out->law, err);
            if (status) return status;
        }
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            if (strcmp(p->key, rows[k].key) != 0) continue;
            const double x = p->type == US_PROPERTY_INTEGER ? (double)p->integer : p->number;
            if (p->type == US_PROPERTY_STRING || !(x >= rows[k].low && x <= rows[k].high))
                return fail(d, rows[k].remedy, rows[k].message, err);
            *rows[k].to = x;
        }
    }
    if (texture >= 0) out->ground = out->other = texture;
    return US_OK;
}
