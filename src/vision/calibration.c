// Calibration files as ROS 2's camera_calibration writes them.
//
// They are YAML, of which they use little: lines "key: value", and matrices as a key without a value, below
// which stand rows, cols and data. Data are a list in brackets, over as many lines as it likes. Keys that say
// nothing about the camera are passed over.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/files.h"
#include "base/text_value.h"
#include "understudy/vision.h"

enum { MAX_FILE = 1 << 16, MAX_WORD = 64, MAX_DATA = 14 };

typedef struct calibration_text {
    const char *at;  // the text ends with 0
    const char *name;
    int32_t line;
    char matrix[MAX_WORD];  // whose data come
    us_calibration out;
    us_error *err;
} calibration_text;

static us_status fail(const calibration_text *r, const char *element, const char *remedy, const char *what) {
    const us_place place = {.file = r->name, .line = r->line, .element = element};
    return us_error_set(r->err, US_ERR_SYNTAX, &place, remedy, "%s", what);
}

static void skip_blanks(calibration_text *r) {
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r')
        r->at++;
}

static void skip_line(calibration_text *r) {
    while (*r->at && *r->at != '\n')
        r->at++;
}

// A value to the end of the line, without quotes, blanks at its end and what follows a "#".
static void take_word(calibration_text *r, char out[MAX_WORD]) {
    size_t n = 0;
    const char quote = *r->at == '"' || *r->at == '\'' ? *r->at++ : 0;
    for (; *r->at && *r->at != '\n' && *r->at != '\r' && (quote ? *r->at != quote : *r->at != '#'); r->at++)
        if (n + 1 < MAX_WORD) out[n++] = *r->at;
    while (n > 0 && usi_is_blank(out[n - 1]))
        n--;
    out[n] = 0;
    char clean[MAX_WORD];
    usi_text_clean(out, clean, sizeof clean);
    memcpy(out, clean, sizeof clean);
}

// "[1, 2, 3]", over several lines or in one.
static us_status take_list(calibration_text *r, const char *key, double *out, int32_t max, int32_t *out_n) {
    static const char *const remedy = "write a list of numbers: [1, 2, 3]";
    int32_t n = 0;
    if (*r->at != '[') return fail(r, key, remedy, "a list begins with [");
    r->at++;
    for (;;) {
        while (usi_is_blank(*r->at) || *r->at == ',') {
            r->line += *r->at == '\n';
            r->at++;
        }
        if (*r->at == ']') break;
        if (!*r->at) return fail(r, key, remedy, "the list has no end");
        if (n == max)
            return fail(r, key, "check the number of values", "the list has more values than the matrix");
        const char *end;
        const char *wrong = usi_number_scan(r->at, &end, &out[n]);
        if (wrong || !isfinite(out[n])) return fail(r, key, remedy, "a value of the list is no number");
        n++;
        r->at = end;
    }
    r->at++;
    *out_n = n;
    return US_OK;
}

// The data of the matrix whose key came last.
static us_status take_data(calibration_text *r) {
    us_camera_info *info = &r->out.info;
    const struct {
        const char *name;
        double *to;
        int32_t n;  // 0: any
    } known[] = {{"camera_matrix", info->k, 9},
                 {"distortion_coefficients", info->d, 0},
                 {"rectification_matrix", info->r, 9},
                 {"projection_matrix", info->p, 12}};
    for (int i = 0; i < 4; i++) {
        if (strcmp(r->matrix, known[i].name) != 0) continue;
        double data[MAX_DATA];
        int32_t n = 0;
        const us_status status = take_list(r, r->matrix, data, known[i].n ? known[i].n : MAX_DATA, &n);
        if (status) return status;
        if (known[i].n && n != known[i].n)
            return fail(r, r->matrix, "check the number of values",
                        "the list has fewer values than the matrix");
        // What is 0 of models with more coefficients than are known is not there.
        while (!known[i].n && n > 8 && data[n - 1] == 0)
            n--;
        if (n > 12 || (!known[i].n && n > 8))
            return fail(r, r->matrix, "calibrate with plumb_bob, rational_polynomial or equidistant",
                        "there are more coefficients than the models that are known have");
        memcpy(known[i].to, data, (size_t)n * sizeof data[0]);
        if (!known[i].n) info->n_d = n;
        return US_OK;
    }
    skip_line(r);
    return US_OK;
}

static us_status take_size(calibration_text *r, const char *key, int32_t *out) {
    char word[MAX_WORD];
    take_word(r, word);
    double x = 0;
    const char *end;
    const char *wrong = usi_number_scan(word, &end, &x);
    if (wrong || *end || !(x >= 1 && x <= 65535) || x != floor(x))
        return fail(r, key, "write a number of pixels, from 1 to 65535", "the size is none");
    *out = (int32_t)x;
    return US_OK;
}

static us_status take_value(calibration_text *r, const char *key) {
    if (strcmp(key, "image_width") == 0) return take_size(r, key, &r->out.width);
    if (strcmp(key, "image_height") == 0) return take_size(r, key, &r->out.height);
    if (strcmp(key, "data") == 0) return take_data(r);
    char word[MAX_WORD];
    take_word(r, word);
    if (strcmp(key, "camera_name") == 0) memcpy(r->out.name, word, sizeof word);
    if (strcmp(key, "distortion_model") == 0) {
        memcpy(r->out.model, word, sizeof r->out.model - 1);
        static const char *const known[] = {"plumb_bob", "rational_polynomial", "equidistant"};
        for (int i = 0; i < 3; i++)
            if (strcmp(word, known[i]) == 0) r->out.info.distortion_model = known[i];
    }
    if (!word[0]) memcpy(r->matrix, key, strlen(key) + 1);
    return US_OK;
}

static us_status take_line(calibration_text *r) {
    char key[MAX_WORD];
    size_t n = 0;
    skip_blanks(r);
    while (*r->at && *r->at != ':' && *r->at != '\n' && *r->at != '#')
        if (n + 1 < MAX_WORD) {
            key[n++] = *r->at++;
        } else {
            return fail(r, NULL, "give the file that the calibration wrote",
                        "a key is longer than any that is known");
        }
    us_status status = US_OK;
    if (*r->at == ':') {
        key[n] = 0;
        r->at++;
        skip_blanks(r);
        status = take_value(r, key);
    }
    skip_line(r);
    if (*r->at == '\n') {
        r->at++;
        r->line++;
    }
    return status;
}

static us_status check_whole(calibration_text *r) {
    const us_camera_info *info = &r->out.info;
    r->line = 0;
    static const char *const remedy = "give the file that the calibration wrote";
    if (!r->out.width || !r->out.height)
        return fail(r, NULL, remedy, "there is no image_width or no image_height");
    if (!(info->k[0] > 0)) return fail(r, NULL, remedy, "there is no camera_matrix");
    if (!info->distortion_model)
        return fail(r, r->out.model, "calibrate with plumb_bob, rational_polynomial or equidistant",
                    r->out.model[0] ? "the distortion model is not known" : "there is no distortion_model");
    us_camera_model m;
    us_error why = {0};
    if (us_camera_from_info(info, r->out.width, r->out.height, &m, &why))
        return fail(r, NULL, why.remedy, why.message);
    return US_OK;
}

us_status us_calibration_decode(const char *name, const char *text, size_t length, us_calibration *out,
                                us_error *err) {
    if (!text || !out) return US_ERR_ARG;
    char copy[MAX_FILE + 1];
    calibration_text r = {.at = copy, .name = name, .line = 1, .err = err};
    if (length > MAX_FILE)
        return fail(&r, NULL, "give the file that the calibration wrote", "it is longer than 64 KiB");
    memcpy(copy, text, length);
    copy[length] = 0;
    us_camera_info *info = &r.out.info;
    info->r[0] = info->r[4] = info->r[8] = 1;
    while (*r.at) {
        const us_status status = take_line(&r);
        if (status) return status;
    }
    const us_status status = check_whole(&r);
    if (status) return status;
    // A camera that was calibrated alone may have no projection matrix.
    if (info->p[0] == 0)
        for (int i = 0; i < 3; i++)
            memcpy(&info->p[4 * i], &info->k[3 * i], 3 * sizeof info->k[0]);
    *out = r.out;
    return US_OK;
}

us_status us_calibration_read(const char *path, us_calibration *out, us_error *err) {
    if (!path || !out) return US_ERR_ARG;
    char text[MAX_FILE];
    size_t length = 0;
    const us_place place = {.file = path};
    const us_status status = usi_bytes_read(path, text, sizeof text, &length);
    if (status == US_ERR_LIMIT)
        return us_error_set(err, US_ERR_SYNTAX, &place, "give the file that the calibration wrote",
                            "it is longer than 64 KiB");
    if (status)
        return us_error_set(err, status, &place, "check the path and its permissions", "cannot be read");
    return us_calibration_decode(path, text, length, out, err);
}
