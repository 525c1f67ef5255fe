// The files of a raster, resampled onto one grid.
//
// Every file becomes a source: a GDAL dataset on the grid of the frame. The samples of one that is on that
// grid already are read as they are. Any other is resampled by GDAL's warper, window by window, through a
// virtual dataset that computes on demand:
//
//     file --> translate: the band as Float64, or the bands as RGBA --> warp: the frame's grid --> source
//
// Files that continue each other's grid, as tiles of degrees do, are joined before they are resampled:
// between two of them the ground is interpolated from both.
//
// Heights are interpolated, masks take the nearest sample. What is missing (nodata, a mask, alpha 0, NaN,
// beyond the edge) is a gap, which the files after the first one fill, in their order.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "terrain/raster_source.h"

enum { N_ARGUMENT = 40, NUMBER_TEXT = 40 };

// ---------------------------------------------------------------- metadata of a file

// Metres of a unit's name; 0 for an unknown one. Spelt as in GeoTIFF, in EPSG's tables and by people.
static double metres_of(const char *unit) {
    static const struct {
        const char *name;
        double metres;
    } rows[] = {
        {"", 1},
        {"m", 1},
        {"metre", 1},
        {"meter", 1},
        {"metres", 1},
        {"meters", 1},
        {"ft", 0.3048},
        {"foot", 0.3048},
        {"feet", 0.3048},
        {"international foot", 0.3048},
        {"us-ft", 1200.0 / 3937},
        {"ft-us", 1200.0 / 3937},
        {"us survey foot", 1200.0 / 3937},
        {"us survey feet", 1200.0 / 3937},
        {"foot_us", 1200.0 / 3937},
        {"km", 1000},
        {"kilometre", 1000},
        {"kilometer", 1000},
        {"cm", 0.01},
        {"centimetre", 0.01},
        {"centimeter", 0.01},
        {"mm", 0.001},
        {"millimetre", 0.001},
        {"millimeter", 0.001},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *a = rows[i].name, *b = unit;
        while (*a && *b && *a == (*b >= 'A' && *b <= 'Z' ? *b + 32 : *b)) {
            a++;
            b++;
        }
        if (!*a && !*b) return rows[i].metres;
    }
    char *end;
    double number = strtod(unit, &end);
    return end != unit && !*end && isfinite(number) && number > 0 ? number : 0;
}

static us_status read_reference(usi_raster *r, usi_raster_source *s, us_error *err) {
    const usi_gdal *g = r->gdal;
    us_place place = {.file = s->file};
    OGRSpatialReferenceH srs = g->GDALGetSpatialRef(s->chain[0]);
    if (srs) {
        s->srs = g->OSRClone(srs);
    } else if (r->def.reference) {
        us_place option = {.file = s->file, .element = "reference"};
        s->srs = g->OSRNewSpatialReference(NULL);
        // A URL would be fetched from the network.
        if (!s->srs || strstr(r->def.reference, "://") ||
            g->OSRSetFromUserInput(s->srs, r->def.reference) != OGRERR_NONE)
            return us_error_set(err, US_ERR_VALUE, &option,
                                "write for example EPSG:32610, IAU_2015:49900, WKT, or a PROJ text",
                                "invalid reference system \"%.100s\"", r->def.reference);
    } else if (!r->def.is_metric) {
        return us_error_set(err, US_ERR_VALUE, &place,
                            "say which it is by --reference (EPSG:32610, WKT, ...), or by --metric that its "
                            "coordinates are plain metres",
                            "the file names no reference system");
    }
    if (!s->srs) return US_OK;
    g->OSRSetAxisMappingStrategy(s->srs, OAMS_TRADITIONAL_GIS_ORDER);
    if (!g->OSRIsGeographic(s->srs) && !g->OSRIsProjected(s->srs) && !g->OSRIsLocal(s->srs))
        return us_error_set(
            err, US_ERR_VALUE, &place, "reproject it first: gdalwarp -t_srs EPSG:... IN.tif OUT.tif",
            "its reference system \"%.60s\" is neither a map projection nor longitude and latitude",
            g->OSRGetName(s->srs));
    return US_OK;
}

// Names of the bands: "Red, Green, Blue".
static void list_bands(const usi_gdal *g, GDALDatasetH ds, char *out, size_t cap) {
    int n = g->GDALGetRasterCount(ds);
    size_t length = 0;
    out[0] = 0;
    for (int i = 1; i <= n && length + 24 < cap; i++) {
        const char *name = g->GDALGetColorInterpretationName(
            g->GDALGetRasterColorInterpretation(g->GDALGetRasterBand(ds, i)));
        length +=
            (size_t)snprintf(out + length, cap - length, "%s%.20s", i > 1 ? ", " : "", i > 8 ? "..." : name);
        if (i > 8) break;
    }
}

// GDAL before 3.7 has no type for bytes with a sign: it calls them Byte, and says it in the metadata.
static bool is_signed_byte(const usi_gdal *g, GDALRasterBandH band) {
    const char *item = g->GDALGetMetadataItem(band, "PIXELTYPE", "IMAGE_STRUCTURE");
    return g->GDALGetRasterDataType(band) == GDT_Byte && item && strcmp(item, "SIGNEDBYTE") == 0;
}

const char *usi_source_type(const usi_gdal *g, GDALRasterBandH band) {
    return is_signed_byte(g, band) ? "Int8" : g->GDALGetDataTypeName(g->GDALGetRasterDataType(band));
}

static us_status choose_band(usi_raster *r, usi_raster_source *s, us_error *err) {
    const usi_gdal *g = r->gdal;
    us_place place = {.file = s->file};
    int n = g->GDALGetRasterCount(s->chain[0]), n_good = 0, band = r->def.band;
    char names[200];
    list_bands(g, s->chain[0], names, sizeof names);
    for (int i = 1; i <= n; i++) {
        bool is_alpha =
            g->GDALGetRasterColorInterpretation(g->GDALGetRasterBand(s->chain[0], i)) == GCI_AlphaBand;
        if (is_alpha && i != r->def.band) s->alpha = i;
        if (!is_alpha && !r->def.band && ++n_good == 1) band = i;
    }
    if (n_good > 1)
        return us_error_set(err, US_ERR_VALUE, &place,
                            r->type == US_LAYER_NUMBER
                                ? "say by --band which one has the heights; a photograph belongs to --ortho"
                                : "give a raster with one band",
                            "it has %d bands: %s", n, names);
    if (band < 1 || band > n)
        return us_error_set(err, US_ERR_VALUE, &place, "count from 1", "there is no band %d: it has %d (%s)",
                            band, n, names);
    s->band = band;
    GDALRasterBandH chosen = g->GDALGetRasterBand(s->chain[0], band);
    GDALDataType type = g->GDALGetRasterDataType(chosen);
    s->is_signed = is_signed_byte(g, chosen);
    if (g->GDALDataTypeIsComplex(type))
        return us_error_set(err, US_ERR_VALUE, &place, "give a raster of plain numbers",
                            "band %d has complex numbers (%s)", band, g->GDALGetDataTypeName(type));
    if (r->type == US_LAYER_REGION && (type != GDT_Byte || s->is_signed))
        return us_error_set(err, US_ERR_VALUE, &place, "make it one: gdal_translate -ot Byte IN.tif OUT.tif",
                            "regions are numbers from 0 to 255, kept as Byte; these are %s",
                            usi_source_type(g, chosen));
    return US_OK;
}

// Heights in metres: the band's scale and offset, then its unit.
static us_status read_unit(usi_raster *r, usi_raster_source *s, us_error *err) {
    const usi_gdal *g = r->gdal;
    us_place place = {.file = s->file};
    GDALRasterBandH band = g->GDALGetRasterBand(s->chain[0], s->band);
    const char *unit = g->GDALGetRasterUnitType(band);
    char *name = NULL;
    double metres = 1;
    if (r->def.unit) {
        metres = metres_of(r->def.unit);
        us_place option = {.file = s->file, .element = "unit"};
        if (!(metres > 0) || !r->def.unit[0])
            return us_error_set(err, US_ERR_VALUE, &option, "write m, ft, us-ft, km, or the metres of one",
                                "invalid unit of heights \"%.60s\"", r->def.unit);
    } else if (unit && unit[0]) {
        metres = metres_of(unit);
        if (!(metres > 0))
            return us_error_set(err, US_ERR_VALUE, &place,
                                "say what it is by --unit: m, ft, us-ft, km, or the metres of one",
                                "its heights are in an unknown unit, \"%.60s\"", unit);
    } else if (s->srs && g->OSRIsCompound(s->srs)) {
        metres = g->OSRGetTargetLinearUnits(s->srs, "VERT_CS", &name);
        unit = name;
    }
    int has = 0;
    double scale = g->GDALGetRasterScale(band, &has);
    if (!has || scale == 0) scale = 1;
    double offset = g->GDALGetRasterOffset(band, &has);
    if (!has) offset = 0;
    s->factor = scale * metres;
    s->shift = offset * metres;
    if (s == r->sources) snprintf(r->info.unit, sizeof r->info.unit, "%s", unit ? unit : "");
    return US_OK;
}

// Formats whose samples are in the file itself, or in one of the same name beside it. What names files and
// addresses of its own (VRT, and the catalogues and services that GDAL knows) is not opened.
static const char *const formats[] = {"GTiff",   "AAIGrid", "GRASSASCIIGrid", "ENVI", "EHdr", "HFA",
                                      "SRTMHGT", "USGSDEM", "DTED",           "GSAG", "GSBG", "GS7BG",
                                      "PNG",     "JPEG",    "JP2OpenJPEG",    "BMP",  NULL};
static const char *const geotiff[] = {"GTiff", NULL};

// What GDAL may find beside the file: where it lies and how it is laid out. Not what stands in for its
// samples
// (.ovr, .msk) or names files that do (.aux.xml).
enum { N_BESIDE = 24 };
typedef struct siblings {
    char name[N_BESIDE][300];
    char *list[N_BESIDE + 1];
} siblings;

static void list_siblings(const char *path, siblings *out) {
    static const char *const ends[] = {"tfw", "TFW", "tifw", "tiffw", "wld", "prj", "PRJ",
                                       "hdr", "HDR", "blw",  "bpw",   "pgw", "jgw", "j2w",
                                       "stx", "clr", "bil",  "img",   "dat", "rrd"};
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    const int n_stem = dot ? (int)(dot - base) : (int)strlen(base);
    int n = 0;
    snprintf(out->name[n++], sizeof out->name[0], "%s", base);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        snprintf(out->name[n++], sizeof out->name[0], "%.*s.%s", n_stem, base, ends[i]);
    for (int i = 0; i < n; i++)
        out->list[i] = out->name[i];
    out->list[n] = NULL;
}

// A plain file: GDAL takes other names for addresses on the network and for things inside archives.
static us_status check_path(const usi_raster_source *s, int64_t *out_size, us_error *err) {
    us_place place = {.file = s->file};
    struct stat about;
    if (stat(s->file, &about) != 0)
        return us_error_set(err, US_ERR_IO, &place, "check the name; rasters are files, never addresses",
                            "the file does not exist");
    if (!S_ISREG(about.st_mode) || strncmp(s->file, "/vsi", 4) == 0)
        return us_error_set(err, US_ERR_IO, &place, "name a regular file", "it is not a regular file");
    *out_size = (int64_t)about.st_size;
    return US_OK;
}

// A few bytes can claim any number of samples: what they claim must be believable, and so must the blocks
// that are unpacked as a whole.
static us_status check_size(const usi_raster *r, const usi_raster_source *s, int64_t size, us_error *err) {
    enum { MAX_BLOCK = 256 << 20, MIN_SAMPLE = 100 * 1000 * 1000, SAMPLES_PER_BYTE = 1000 };
    us_place place = {.file = s->file};
    const usi_gdal *g = r->gdal;
    const int64_t n = (int64_t)s->n_x * s->n_y, most = MIN_SAMPLE + SAMPLES_PER_BYTE * size;
    if (n > most)
        return us_error_set(err, US_ERR_LIMIT, &place, "cut out what is needed: gdal_translate -srcwin",
                            "%d x %d samples are more than %lld bytes can stand for", (int)s->n_x,
                            (int)s->n_y, (long long)size);
    for (int i = 1; i <= g->GDALGetRasterCount(s->chain[0]); i++) {
        int x = 0, y = 0;
        GDALRasterBandH band = g->GDALGetRasterBand(s->chain[0], i);
        g->GDALGetBlockSize(band, &x, &y);
        int64_t bytes = (int64_t)x * y * g->GDALGetDataTypeSizeBytes(g->GDALGetRasterDataType(band));
        if (bytes > MAX_BLOCK)
            return us_error_set(
                err, US_ERR_LIMIT, &place, "tile it: gdal_translate -co TILED=YES IN.tif OUT.tif",
                "its blocks of %d x %d samples take %lld MB each", x, y, (long long)(bytes >> 20));
    }
    return US_OK;
}

static us_status open_source(usi_raster *r, usi_raster_source *s, us_error *err) {
    const usi_gdal *g = r->gdal;
    us_place place = {.file = s->file};
    int64_t size = 0;
    us_status status = check_path(s, &size, err);
    if (status) return status;
    siblings beside = {.list = {NULL}};
    list_siblings(s->file, &beside);
    usi_gdal_error error;
    usi_gdal_catch_begin(g, &error);
    s->chain[0] =
        g->GDALOpenEx(s->file, GDAL_OF_RASTER | GDAL_OF_READONLY | GDAL_OF_VERBOSE_ERROR,
                      r->def.is_geotiff ? geotiff : formats, NULL, (const char *const *)beside.list);
    usi_gdal_catch_end(g);
    if (!s->chain[0] || g->GDALGetRasterCount(s->chain[0]) == 0) {
        if (s->chain[0]) g->GDALClose(s->chain[0]);
        s->chain[0] = NULL;
        return us_error_set(
            err, US_ERR_IO, &place, "give a GeoTIFF; other formats: gdal_translate IN OUT.tif",
            "it cannot be opened as a raster: %s", error.text[0] ? error.text : "there is no band in it");
    }
    s->n_chain = 1;
    s->factor = 1;
    s->n_x = g->GDALGetRasterXSize(s->chain[0]);
    s->n_y = g->GDALGetRasterYSize(s->chain[0]);
    status = check_size(r, s, size, err);
    if (status) return status;
    double inverse[6];
    if (g->GDALGetGeoTransform(s->chain[0], s->gt) != CE_None || !usi_geo_inverse(s->gt, inverse))
        return us_error_set(err, US_ERR_VALUE, &place,
                            "write a world file beside it (.tfw), or gdal_translate -a_ullr WEST NORTH EAST "
                            "SOUTH IN.tif OUT.tif",
                            "the file does not say where its samples lie");
    if (r->type == US_LAYER_NUMBER && (s->n_x < 2 || s->n_y < 2))
        return us_error_set(err, US_ERR_VALUE, &place, "use a raster of at least 2 x 2",
                            "%d x %d samples span no surface", (int)s->n_x, (int)s->n_y);
    usi_gdal_catch_begin(g, &error);
    status = read_reference(r, s, err);
    if (!status && r->type != US_LAYER_COLOUR) status = choose_band(r, s, err);
    if (!status && r->type == US_LAYER_NUMBER) status = read_unit(r, s, err);
    if (!status && s->srs) g->OSRStripVertical(s->srs);
    usi_gdal_catch_end(g);
    return status;
}

us_status usi_source_open(usi_raster *r, usi_raster_source *s, us_error *err) {
    // Around all of it: GDAL reads some tags when it is asked for them, and says then what is wrong with
    // them.
    usi_gdal_error error;
    usi_gdal_catch_begin(r->gdal, &error);
    us_status status = open_source(r, s, err);
    usi_gdal_catch_end(r->gdal);
    return status;
}

// ---------------------------------------------------------------- onto the grid

typedef struct arguments {
    const char *item[N_ARGUMENT];  // GDAL's functions take them as char *, and only read
    int n;
    char number[12][NUMBER_TEXT];
    int n_number;
} arguments;

static void add(arguments *a, const char *text) {
    if (a->n < N_ARGUMENT - 1) a->item[a->n++] = text;
}

static void add_number(arguments *a, double x) {
    char *text = a->number[a->n_number++];
    snprintf(text, NUMBER_TEXT, "%.17g", x);
    add(a, text);
}

static us_status append(usi_raster_source *s, GDALDatasetH ds, const usi_gdal_error *error, us_error *err) {
    us_place place = {.file = s->file};
    if (!ds)
        return us_error_set(err, US_ERR_IO, &place, "look at it with gdalinfo",
                            "it cannot be laid into the frame: %s",
                            error->text[0] ? error->text : "no message from GDAL");
    s->chain[s->n_chain++] = ds;
    return US_OK;
}

// The bands of a photograph as arguments of a translation: to bytes, red, green, blue and perhaps alpha.
static void add_colours(usi_raster *r, const usi_raster_source *s, arguments *a) {
    const usi_gdal *g = r->gdal;
    GDALDatasetH ds = s->chain[0];
    int n = g->GDALGetRasterCount(ds);
    GDALRasterBandH first = g->GDALGetRasterBand(ds, 1);
    if (n == 1 && g->GDALGetRasterColorTable(first)) {
        add(a, "-expand");
        add(a, "rgba");
        return;
    }
    bool is_gray = n < 3,
         has_alpha =
             g->GDALGetRasterColorInterpretation(g->GDALGetRasterBand(ds, is_gray ? n
                                                                          : n > 3 ? 4
                                                                                  : 3)) == GCI_AlphaBand &&
             n != 1;
    static const char *const band[] = {"1", "2", "3", "4"};
    for (int i = 0; i < 3; i++) {
        add(a, "-b");
        add(a, band[is_gray ? 0 : i]);
    }
    if (has_alpha) {
        add(a, "-b");
        add(a, band[is_gray ? 1 : 3]);
    }
    if (g->GDALGetRasterDataType(first) == GDT_Byte) return;
    // Wider numbers: scaled from the minimum to the maximum of the three.
    double low = INFINITY, high = -INFINITY, range[2];
    for (int i = 1; i <= (is_gray ? 1 : 3); i++) {
        if (g->GDALComputeRasterMinMax(g->GDALGetRasterBand(ds, i), 1, range) != CE_None) continue;
        low = fmin(low, range[0]);
        high = fmax(high, range[1]);
    }
    add(a, "-ot");
    add(a, "Byte");
    add(a, "-scale");
    if (high > low) {
        add_number(a, low);
        add_number(a, high);
        add_number(a, 0);
        add_number(a, 255);
    }
}

// Copies rows of bytes with a sign, which GDAL reads as 0 to 255, as the numbers that they are; gaps, and
// what --nodata names, as GAP.
enum { SIGNED_ROWS = 16, SIGNED_GAP = INT16_MIN };

static CPLErr copy_signed(const usi_raster *r, const usi_raster_source *s, int row, int n_row, int16_t *z,
                          uint8_t *mask, GDALRasterBandH to) {
    const usi_gdal *g = r->gdal;
    GDALRasterBandH from = g->GDALGetRasterBand(s->chain[0], s->band);
    const size_t n = (size_t)s->n_x * (size_t)n_row;
    int has_nodata = 0;
    const double nodata = g->GDALGetRasterNoDataValue(from, &has_nodata);
    CPLErr bad = g->GDALRasterIO(from, GF_Read, 0, row, s->n_x, n_row, z, s->n_x, n_row, GDT_Int16, 0, 0);
    memset(mask, 255, n);
    if (!bad && s->alpha)
        bad = g->GDALRasterIO(g->GDALGetRasterBand(s->chain[0], s->alpha), GF_Read, 0, row, s->n_x, n_row,
                              mask, s->n_x, n_row, GDT_Byte, 0, 0);
    else if (!bad && !(g->GDALGetMaskFlags(from) & (GMF_ALL_VALID | GMF_NODATA)))
        bad = g->GDALRasterIO(g->GDALGetMaskBand(from), GF_Read, 0, row, s->n_x, n_row, mask, s->n_x, n_row,
                              GDT_Byte, 0, 0);
    for (size_t k = 0; k < n && !bad; k++) {
        if (z[k] > INT8_MAX) z[k] = (int16_t)(z[k] - 256);
        bool is_gap = !mask[k] || (has_nodata && z[k] == nodata) || (r->def.nodata && z[k] == *r->def.nodata);
        if (is_gap) z[k] = SIGNED_GAP;
    }
    if (bad) return bad;
    return g->GDALRasterIO(to, GF_Write, 0, row, s->n_x, n_row, z, s->n_x, n_row, GDT_Int16, 0, 0);
}

// Gives bytes with a sign a type that GDAL's resampling knows: a copy in memory.
static us_status take_sign(usi_raster *r, usi_raster_source *s, us_error *err) {
    enum { MAX_SIGNED = 200 * 1000 * 1000 };
    const usi_gdal *g = r->gdal;
    us_place place = {.file = s->file};
    if (!s->is_signed || s->n_chain > 1) return US_OK;
    if ((int64_t)s->n_x * s->n_y > MAX_SIGNED)
        return us_error_set(err, US_ERR_LIMIT, &place, "cut out what is needed: gdal_translate -srcwin",
                            "%d x %d are more bytes with a sign than fit in memory", (int)s->n_x,
                            (int)s->n_y);
    const size_t n = (size_t)s->n_x * SIGNED_ROWS, bytes = n * (sizeof(int16_t) + 1);
    int16_t *z = usi_alloc(&r->allocator, bytes, USI_ALIGN);
    if (!z) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a raster");
    usi_gdal_error error;
    usi_gdal_catch_begin(g, &error);
    GDALDatasetH ds = g->GDALCreate(g->GDALGetDriverByName("MEM"), "", s->n_x, s->n_y, 1, GDT_Int16, NULL);
    CPLErr bad = ds ? g->GDALSetGeoTransform(ds, s->gt) : CE_Failure;
    if (!bad && s->srs) bad = g->GDALSetSpatialRef(ds, s->srs);
    if (!bad) bad = g->GDALSetRasterNoDataValue(g->GDALGetRasterBand(ds, 1), SIGNED_GAP);
    for (int row = 0; row < s->n_y && !bad; row += SIGNED_ROWS) {
        int n_row = s->n_y - row < SIGNED_ROWS ? s->n_y - row : SIGNED_ROWS;
        bad = copy_signed(r, s, row, n_row, z, (uint8_t *)(z + n), g->GDALGetRasterBand(ds, 1));
    }
    if (bad && ds) g->GDALClose(ds);
    usi_gdal_catch_end(g);
    usi_release(&r->allocator, z, bytes, USI_ALIGN);
    s->band = 1;
    s->alpha = 0;
    return append(s, bad ? NULL : ds, &error, err);
}

static us_status translate(usi_raster *r, usi_raster_source *s, us_error *err) {
    const usi_gdal *g = r->gdal;
    arguments a = {.n = 0};
    char band[16], alpha[16];
    snprintf(band, sizeof band, "%d", (int)s->band);
    snprintf(alpha, sizeof alpha, "%d", (int)s->alpha);
    add(&a, "-of");
    add(&a, "VRT");
    if (r->type == US_LAYER_COLOUR) {
        add_colours(r, s, &a);
    } else {
        add(&a, "-b");
        add(&a, band);
        if (s->alpha) {
            add(&a, "-mask");
            add(&a, alpha);
        }
        if (r->type == US_LAYER_NUMBER) {
            add(&a, "-ot");
            add(&a, "Float64");
        }
        if (r->type == US_LAYER_NUMBER && r->def.nodata && !s->is_signed) {
            add(&a, "-a_nodata");
            add_number(&a, *r->def.nodata);
        }
    }
    usi_gdal_error error;
    usi_gdal_catch_begin(g, &error);
    GDALTranslateOptions *options = g->GDALTranslateOptionsNew((char **)a.item, NULL);
    GDALDatasetH ds = options ? g->GDALTranslate("", s->chain[s->n_chain - 1], options, NULL) : NULL;
    if (options) g->GDALTranslateOptionsFree(options);
    usi_gdal_catch_end(g);
    s->band = 1;
    s->alpha = 0;
    return append(s, ds, &error, err);
}

// Adds the extent and size of the part of the grid that a source covers.
static void add_extent(arguments *a, const usi_frame *f, const usi_raster_source *s) {
    double west = f->x + (s->column - 0.5 * f->n_x) * f->dx, north = f->y - (s->row - 0.5 * f->n_y) * f->dy;
    add(a, "-te");
    add_number(a, west);
    add_number(a, north - s->n_row * f->dy);
    add_number(a, west + s->n_column * f->dx);
    add_number(a, north);
    add(a, "-ts");
    add_number(a, s->n_column);
    add_number(a, s->n_row);
}

// Adds how samples are interpolated, and what those become that have no value.
static void add_resampling(arguments *a, us_layer_type type, bool is_much_finer) {
    add(a, "-r");
    add(a, type == US_LAYER_REGION ? "near" : "bilinear");
    // Left alone, GDAL widens its kernel for any slight shrinking, and a plane is no plane any more. For more
    // than half it may: then it is a mean.
    if (type == US_LAYER_NUMBER && !is_much_finer) {
        add(a, "-wo");
        add(a, "XSCALE=1");
        add(a, "-wo");
        add(a, "YSCALE=1");
    }
    if (type == US_LAYER_NUMBER) {
        add(a, "-dstnodata");
        add(a, "nan");
        add(a, "-wt");
        add(a, "Float64");
    }
    if (type == US_LAYER_REGION) {
        add(a, "-dstnodata");
        add(a, "0");
    }
    if (type == US_LAYER_COLOUR) add(a, "-dstalpha");
}

static us_status warp(usi_raster *r, usi_raster_source *s, us_error *err) {
    const usi_gdal *g = r->gdal;
    const usi_frame *f = &r->frame;
    us_place place = {.file = s->file};
    if (!s->srs != !f->srs)
        return us_error_set(err, US_ERR_VALUE, &place, "say by --reference what the one without is in",
                            "of this file and the first one only one has a reference system");
    arguments a = {.n = 0};
    char *from = NULL, *to = NULL;
    usi_gdal_error error;
    usi_gdal_catch_begin(g, &error);
    static const char *const wkt2[] = {"FORMAT=WKT2_2019", NULL};
    add(&a, "-of");
    add(&a, "VRT");
    add(&a, "-et");
    add(&a, r->type == US_LAYER_NUMBER ? "0" : "0.05");
    add(&a, "-novshift");
    if (s->srs && g->OSRExportToWktEx(s->srs, &from, wkt2) == OGRERR_NONE &&
        g->OSRExportToWktEx(f->srs, &to, wkt2) == OGRERR_NONE) {
        add(&a, "-s_srs");
        add(&a, from);
        add(&a, "-t_srs");
        add(&a, to);
    }
    add_extent(&a, f, s);
    add_resampling(&a, r->type, s->is_much_finer);

    GDALWarpAppOptions *options = g->GDALWarpAppOptionsNew((char **)a.item, NULL);
    GDALDatasetH in[] = {s->chain[s->n_chain - 1]};
    GDALDatasetH ds = options ? g->GDALWarp("", NULL, 1, in, options, NULL) : NULL;
    if (options) g->GDALWarpAppOptionsFree(options);
    g->VSIFree(from);
    g->VSIFree(to);
    usi_gdal_catch_end(g);
    return append(s, ds, &error, err);
}

// Whether a file's samples are those of the base's grid, only shifted by whole columns and rows.
static bool is_aligned(const usi_gdal *g, const usi_base *b, const usi_raster_source *s, double *column,
                       double *row) {
    if (!s->srs != !b->srs || (s->srs && s->srs != b->srs && !g->OSRIsSame(s->srs, b->srs))) return false;
    // 1e-8: in the far corner of 1e5 samples a thousandth of one.
    for (int i = 1; i < 6; i++) {
        if (i != 3 && fabs(s->gt[i] - b->gt[i]) > 1e-8 * fabs(b->gt[i < 3 ? 1 : 5])) return false;
    }
    usi_geo_apply(b->inverse, s->gt[0], s->gt[3], column, row);
    return fabs(*column - round(*column)) < 1e-3 && fabs(*row - round(*row)) < 1e-3;
}

us_status usi_source_resample(usi_raster *r, usi_raster_source *s, const usi_base *base, bool is_same,
                              us_error *err) {
    const usi_gdal *g = r->gdal;
    const usi_frame *f = &r->frame;
    double column, row, box[4];
    const bool is_translated = s->n_chain > 1;  // joined
    us_status status = take_sign(r, s, err);
    if (status) return status;
    usi_gdal_error error;
    usi_gdal_catch_begin(g, &error);
    bool is_plain = is_same && r->type != US_LAYER_COLOUR && is_aligned(g, base, s, &column, &row);
    usi_base grid = usi_base_of_frame(f);
    bool has_box = !is_plain && usi_base_box(g, &grid, s->srs, s->gt, s->n_x, s->n_y, box);
    usi_gdal_catch_end(g);
    if (is_plain) {
        s->column = (int32_t)(round(column) - base->west);
        s->row = (int32_t)(round(row) - base->north);
        s->n_column = s->n_x;
        s->n_row = s->n_y;
        return US_OK;
    }
    // One sample more on each side: what is interpolated may reach there.
    s->n_column = f->n_x;
    s->n_row = f->n_y;
    if (has_box) {
        s->is_much_finer = 2 * hypot(box[1] - box[0], box[3] - box[2]) < hypot(s->n_x, s->n_y);
        double west = fmax(0, floor(box[0]) - 1), east = fmin(f->n_x, ceil(box[1]) + 1);
        double north = fmax(0, floor(box[2]) - 1), south = fmin(f->n_y, ceil(box[3]) + 1);
        if (east <= west || south <= north) {
            s->n_column = s->n_row = 0;  // elsewhere
            return US_OK;
        }
        s->column = (int32_t)west;
        s->row = (int32_t)north;
        s->n_column = (int32_t)(east - west);
        s->n_row = (int32_t)(south - north);
    }
    if (!is_translated) status = translate(r, s, err);
    return status ? status : warp(r, s, err);
}

// In reverse order: where files overlap, GDAL takes the last.
us_status usi_source_join(usi_raster *r, const usi_base *base, us_error *err) {
    const usi_gdal *g = r->gdal;
    usi_raster_source *first = r->sources;
    int32_t n = 1;
    double column, row;
    while (n < r->def.n_file && is_aligned(g, base, &r->sources[n], &column, &row) &&
           r->sources[n].factor == first->factor && r->sources[n].shift == first->shift)
        n++;
    if (n == 1) return US_OK;
    size_t bytes = (size_t)n * sizeof(GDALDatasetH);
    GDALDatasetH *in = usi_alloc(&r->allocator, bytes, _Alignof(GDALDatasetH));
    if (!in) return us_error_set(err, US_ERR_MEMORY, NULL, NULL, "no memory for a raster");
    us_status status = US_OK;
    for (int32_t k = 0; k < n && !status; k++) {
        usi_raster_source *s = &r->sources[k];
        status = take_sign(r, s, err);
        if (!status) status = translate(r, s, err);
        in[n - 1 - k] = s->chain[s->n_chain - 1];
        s->is_joined = k > 0;
    }
    if (!status) {
        arguments a = {.n = 0};
        add(&a, "-vrtnodata");
        add(&a, "nan");
        usi_gdal_error error;
        usi_gdal_catch_begin(g, &error);
        GDALBuildVRTOptions *options = g->GDALBuildVRTOptionsNew((char **)a.item, NULL);
        GDALDatasetH ds = options ? g->GDALBuildVRT("", n, in, NULL, options, NULL) : NULL;
        if (options) g->GDALBuildVRTOptionsFree(options);
        usi_gdal_catch_end(g);
        status = append(first, ds, &error, err);
        if (ds) {
            g->GDALGetGeoTransform(ds, first->gt);
            first->n_x = g->GDALGetRasterXSize(ds);
            first->n_y = g->GDALGetRasterYSize(ds);
        }
    }
    usi_release(&r->allocator, in, bytes, _Alignof(GDALDatasetH));
    return status;
}
