// Quadrature over a wheel's rim.
//
// Stress rises with the depth's power n, from a corner that Gauss points alone resolve badly unless n = 1.
// So stress has weights of its own: those that are exact for t^n times polynomials of the seventh degree, at
// the Gauss points. With P_m, Legendre's polynomials on [0, 1], they are
//
//     w_i sum over m of (2 m + 1) P_m(t_i) M_m,  M_m = integral of t^n P_m = M_(m-1) (n - m + 1)/(n + m + 1)
//
// since Gauss points keep the P_m orthogonal. Good to 1e-6 where the shear is smooth. Where it changes sign
// it has a corner, in its second derivative; where a wheel is braked hard it rises within a hundredth of the
// arc: there the points crowd, Gauss points in the cube root of the distance, piece by piece.
#include "soil/soil__quadrature.h"

typedef struct gauss {
    _Alignas(32) double at[16], weight[16];
} gauss;
static const gauss gauss_8 = {
    {0.019855071751231912, 0.10166676129318664, 0.2372337950418355, 0.40828267875217511, 0.59171732124782483,
     0.7627662049581645, 0.89833323870681336, 0.98014492824876809},
    {0.050614268145188344, 0.11119051722668717, 0.15685332293894352, 0.18134189168918088, 0.18134189168918088,
     0.15685332293894352, 0.11119051722668717, 0.050614268145188344}};
static const gauss gauss_12 = {
    {0.0092196828766403782, 0.047941371814762601, 0.11504866290284765, 0.20634102285669126,
     0.31608425050090994, 0.43738329574426554, 0.5626167042557344, 0.68391574949909006, 0.79365897714330869,
     0.88495133709715235, 0.95205862818523745, 0.99078031712335957},
    {0.023587668193256011, 0.053469662997659442, 0.080039164271673055, 0.10158371336153282,
     0.11674626826917732, 0.12457352290670134, 0.12457352290670134, 0.11674626826917732, 0.10158371336153282,
     0.080039164271673055, 0.053469662997659442, 0.023587668193256011}};
static const gauss gauss_16 = {
    {0.0052995325041750307, 0.0277124884633837, 0.067184398806084122, 0.1222977958224985, 0.19106187779867811,
     0.27099161117138632, 0.35919822461037054, 0.45249374508118129, 0.54750625491881877, 0.64080177538962946,
     0.72900838882861363, 0.80893812220132189, 0.87770220417750155, 0.93281560119391593, 0.9722875115366163,
     0.99470046749582497},
    {0.013576229705877019, 0.031126761969323853, 0.047579255841246296, 0.062314485627767015,
     0.074797994408288382, 0.08457825969750131, 0.091301707522461806, 0.094725305227534293,
     0.094725305227534293, 0.091301707522461806, 0.08457825969750131, 0.074797994408288382,
     0.062314485627767015, 0.047579255841246296, 0.031126761969323853, 0.013576229705877019}};
// Logarithms of the eight points.
static const _Alignas(32) double log_at[USI_POINTS] = {
    -3.9192958006440861,  -2.286054860290613,   -1.4387091471258859,  -0.89579550440199907,
    -0.52472625602874112, -0.27080371017260652, -0.10721418964279851, -0.02005483228344055};

void usi_rule_of_power(double power, usi_quadrature *out) {
    out->n = USI_POINTS;
    usi_v4 sum[2] = {usi_v4_zero(), usi_v4_zero()}, now[2] = {usi_v4_all(1), usi_v4_all(1)},
           before[2] = {usi_v4_zero(), usi_v4_zero()};
    double moment = 1 / (power + 1);
    for (int m = 0; m < USI_POINTS; m++) {
        for (int q = 0; q < 2; q++) {
            usi_v4 x = 2 * *(const usi_v4 *)(gauss_8.at + 4 * q) - 1;
            sum[q] += (2 * m + 1) * moment * now[q];
            usi_v4 next = ((2 * m + 1) * x * now[q] - m * before[q]) * (1.0 / (m + 1));
            before[q] = now[q];
            now[q] = next;
        }
        moment *= (power - m) / (power + m + 2);
    }
    for (int q = 0; q < 2; q++) {
        usi_v4 weight = *(const usi_v4 *)(gauss_8.weight + 4 * q),
               least = usi_v4_exp(-power * *(const usi_v4 *)(log_at + 4 * q));
        *(usi_v4 *)(out->at + 4 * q) = *(const usi_v4 *)(gauss_8.at + 4 * q);
        *(usi_v4 *)(out->weight + 4 * q) = weight;
        *(usi_v4 *)(out->stress_weight + 4 * q) = power == 1 ? weight : weight * sum[q] * least;
    }
}

void usi_rule_of_pieces(const double cut[2], bool is_smooth, usi_quadrature *out) {
    double end[4] = {0};
    int n_piece = 1;
    for (int i = 0; i < 2; i++) {
        if (cut[i] > 0 && cut[i] < 1) end[n_piece++] = is_smooth ? cut[i] : cbrt(cut[i]);
    }
    if (n_piece == 3 && end[1] > end[2]) {
        double first = end[2];
        end[2] = end[1];
        end[1] = first;
    }
    end[n_piece] = 1;
    const gauss *points = is_smooth ? &gauss_8 : n_piece == 1 ? &gauss_16 : &gauss_12;
    const int n = is_smooth ? 8 : n_piece == 1 ? 16 : 12;
    out->n = n * n_piece;
    for (int piece = 0; piece < n_piece; piece++) {
        const double from = end[piece], length = end[piece + 1] - from;
        for (int i = 0; i < n; i += 4) {
            const usi_v4 u = from + length * *(const usi_v4 *)(points->at + i),
                         weight = (is_smooth ? usi_v4_all(1) : 3 * u * u) * length *
                                  *(const usi_v4 *)(points->weight + i);
            const int k = piece * n + i;
            *(usi_v4 *)(out->at + k) = is_smooth ? u : u * u * u;
            *(usi_v4 *)(out->weight + k) = *(usi_v4 *)(out->stress_weight + k) = weight;
        }
    }
}
