// GDAL, loaded when it is first needed.
//
// The library brings more than a hundred others with it, and linking it made every command a tenth of a
// second slower. So nothing links it: the headers give the types, and the functions that are used stand in a
// table that dlopen fills once.
#ifndef USI_TERRAIN_GDAL_H
#define USI_TERRAIN_GDAL_H

#include <gdal.h>
#include <gdal_utils.h>
#include <ogr_srs_api.h>

#include "understudy/base.h"

#define USI_GDAL_LIST(X)                    \
    X(GDALAllRegister)                      \
    X(GDALOpenEx)                           \
    X(GDALGetDriverByName)                  \
    X(GDALCreate)                           \
    X(GDALCreateCopy)                       \
    X(GDALClose)                            \
    X(GDALGetRasterXSize)                   \
    X(GDALGetRasterYSize)                   \
    X(GDALGetRasterCount)                   \
    X(GDALGetRasterBand)                    \
    X(GDALGetGeoTransform)                  \
    X(GDALGetSpatialRef)                    \
    X(GDALSetGeoTransform)                  \
    X(GDALSetSpatialRef)                    \
    X(GDALSetDescription)                   \
    X(GDALSetRasterNoDataValue)             \
    X(GDALGetRasterNoDataValue)             \
    X(GDALGetMetadataItem)                  \
    X(GDALGetRasterDataType)                \
    X(GDALGetBlockSize)                     \
    X(GDALGetDataTypeSizeBytes)             \
    X(GDALGetDataTypeName)                  \
    X(GDALDataTypeIsComplex)                \
    X(GDALGetRasterColorInterpretation)     \
    X(GDALGetColorInterpretationName)       \
    X(GDALGetRasterColorTable)              \
    X(GDALGetRasterUnitType)                \
    X(GDALGetRasterScale)                   \
    X(GDALGetRasterOffset)                  \
    X(GDALGetMaskBand)                      \
    X(GDALGetMaskFlags)                     \
    X(GDALFlushRasterCache)                 \
    X(GDALRasterIO)                         \
    X(GDALComputeRasterMinMax)              \
    X(GDALTranslateOptionsNew)              \
    X(GDALTranslateOptionsFree)             \
    X(GDALTranslate)                        \
    X(GDALBuildVRTOptionsNew)               \
    X(GDALBuildVRTOptionsFree)              \
    X(GDALBuildVRT)                         \
    X(GDALWarpAppOptionsNew)                \
    X(GDALWarpAppOptionsFree)               \
    X(GDALWarp)                             \
    X(CPLPushErrorHandlerEx)                \
    X(CPLPopErrorHandler)                   \
    X(CPLGetErrorHandlerUserData)           \
    X(VSIFree)                              \
    X(VSIGetMemFileBuffer)                  \
    X(VSIUnlink)                            \
    X(OSRNewSpatialReference)               \
    X(OSRDestroySpatialReference)           \
    X(OSRClone)                             \
    X(OSRCloneGeogCS)                       \
    X(OSRSetFromUserInput)                  \
    X(OSRSetAxisMappingStrategy)            \
    X(OSRSetPROJEnableNetwork)              \
    X(OSRIsGeographic)                      \
    X(OSRIsProjected)                       \
    X(OSRIsLocal)                           \
    X(OSRIsSame)                            \
    X(OSRStripVertical)                     \
    X(OSRSetProjCS)                         \
    X(OSRSetTM)                             \
    X(OSRGetName)                           \
    X(OSRGetSemiMajor)                      \
    X(OSRGetInvFlattening)                  \
    X(OSRGetLinearUnits)                    \
    X(OSRGetTargetLinearUnits)              \
    X(OSRSetLinearUnitsAndUpdateParameters) \
    X(OSRIsCompound)                        \
    X(OSRExportToWktEx)                     \
    X(OCTNewCoordinateTransformation)       \
    X(OCTDestroyCoordinateTransformation)   \
    X(OCTTransformEx)

typedef struct usi_gdal {
#define USI_GDAL_FIELD(name) __typeof__(&name) name;
    USI_GDAL_LIST(USI_GDAL_FIELD)
#undef USI_GDAL_FIELD
} usi_gdal;

// The table; NULL with an error that says what is missing. Any thread. Its drivers are registered, and PROJ
// stays off the network.
const usi_gdal *usi_gdal_get(us_error *err);

// Errors of GDAL on this thread between begin and end, which nest: the text of the first failure. Nothing is
// printed.
typedef struct usi_gdal_error {
    char text[300];
} usi_gdal_error;

void usi_gdal_catch_begin(const usi_gdal *gdal, usi_gdal_error *error);
void usi_gdal_catch_end(const usi_gdal *gdal);

#endif
