// OpenCV's stereo matchers behind the functions of bench/stereo_opencv.h.
#include "stereo_opencv.h"

#include <opencv2/calib3d.hpp>
#include <opencv2/core.hpp>

struct opencv_stereo {
    cv::Ptr<cv::StereoMatcher> matcher;
    us_stereo_def def;
    cv::Mat disparity;
};

extern "C" const char *opencv_version(void) { return CV_VERSION; }

extern "C" opencv_stereo *opencv_stereo_create(const us_stereo_def *def, bool has_five_paths, int n_thread) {
    cv::setNumThreads(n_thread);
    auto *s = new opencv_stereo;
    s->def = *def;
    int speckle_size = 0;
    double range = 0;
    for (int i = 0; i < def->n_after; i++)
        if (def->after[i].kind == US_FILTER_SPECKLE) {
            speckle_size = def->after[i].size;
            range = def->after[i].range;
        }
    if (def->method == US_STEREO_BLOCK) {
        auto bm = cv::StereoBM::create(def->n_disparity, def->window);
        bm->setPreFilterType(cv::StereoBM::PREFILTER_XSOBEL);
        bm->setPreFilterCap(def->prefilter_cap);
        bm->setTextureThreshold(def->texture);
        bm->setUniquenessRatio(def->uniqueness);
        bm->setDisp12MaxDiff(def->left_right);
        s->matcher = bm;
    } else {
        s->matcher =
            cv::StereoSGBM::create(def->min_disparity, def->n_disparity, def->window, def->p1, def->p2,
                                   def->left_right, def->prefilter_cap, def->uniqueness, 0, 0,
                                   has_five_paths ? cv::StereoSGBM::MODE_SGBM : cv::StereoSGBM::MODE_HH);
    }
    s->matcher->setMinDisparity(def->min_disparity);
    s->matcher->setSpeckleWindowSize(speckle_size);
    s->matcher->setSpeckleRange(static_cast<int>(range));
    return s;
}

extern "C" bool opencv_stereo_match(opencv_stereo *s, const us_image *left, const us_image *right,
                                    float *out) {
    const cv::Mat l(left->height, left->width, CV_8U, left->pixels, left->stride);
    const cv::Mat r(right->height, right->width, CV_8U, right->pixels, right->stride);
    try {
        s->matcher->compute(l, r, s->disparity);
    } catch (const cv::Exception &) {
        return false;
    }
    const float invalid = us_stereo_invalid(&s->def);
    for (int y = 0; y < left->height; y++)
        for (int x = 0; x < left->width; x++) {
            const float d = static_cast<float>(s->disparity.at<short>(y, x)) / 16;
            out[static_cast<size_t>(y) * left->width + x] =
                d < static_cast<float>(s->def.min_disparity) ? invalid : d;
        }
    return true;
}

extern "C" void opencv_stereo_destroy(opencv_stereo *s) { delete s; }
