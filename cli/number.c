// The text of "%.17g", about ten times faster than the C library makes it.
//
// A recording has tens of numbers per row, and with printf their formatting would take far longer than the
// steps they tell of. Seventeen significant digits bring back every bit of a double. A double is m 2^e with m
// below 2^53. For 1e-22 <= |x| < 2^53 the number N = x 10^k, with k chosen so that 1e16 <= N < 1e17, is
//
//     N = m 10^k / 2^-e,      0 <= k <= 38, so that 10^k fits in 128 bits and the product in 192, both
//     exactly.
//
// Dividing is a shift; what it cuts off decides the rounding, half to even as printf does. No approximation
// is made, so the text is printf's own. All other numbers (very small, very large, not finite) go to printf.
#include <math.h>
#include <string.h>

#include "cli.h"

__extension__ typedef unsigned __int128 u128;

enum { N_POWER = 39 };

// 10^k, exact.
static const u128 *powers(void) {
    static u128 table[N_POWER];
    if (table[0] == 0) {
        u128 p = 1;
        for (int k = 0; k < N_POWER; k++, p *= 10)
            table[k] = p;
    }
    return table;
}

// round(m p / 2^shift), half to even; the result fits in 64 bits and 0 <= shift < 192.
static uint64_t scale_and_round(uint64_t m, u128 p, int shift) {
    u128 low = (u128)m * (uint64_t)p, high = (u128)m * (uint64_t)(p >> 64);
    // product = high 2^64 + low, as three words
    u128 middle = high + (uint64_t)(low >> 64);
    uint64_t w0 = (uint64_t)low, w1 = (uint64_t)middle, w2 = (uint64_t)(middle >> 64);
    uint64_t whole, rest, below;  // rest: the 64 bits after the point; below: whether anything follows them
    if (shift == 0) return w0;
    if (shift < 64) {
        whole = (w1 << (64 - shift)) | (w0 >> shift);
        rest = w0 << (64 - shift);
        below = 0;
    } else if (shift < 128) {
        int s = shift - 64;
        whole = s ? (w2 << (64 - s)) | (w1 >> s) : w1;
        rest = s ? (w1 << (64 - s)) | (w0 >> s) : w0;
        below = s ? w0 << (64 - s) : 0;
    } else {
        int s = shift - 128;
        whole = w2 >> s;
        rest = s ? (w2 << (64 - s)) | (w1 >> s) : w1;
        below = (s ? w1 << (64 - s) : 0) | w0;
    }
    const uint64_t half = (uint64_t)1 << 63;
    if (rest > half || (rest == half && (below || (whole & 1)))) whole++;
    return whole;
}

// Eight digits of x below 1e8, two at a time: one long division costs more than four short ones.
static void split_eight(uint32_t x, char *out) {
    static const char pairs[] =
        "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
        "5051525354555657"
        "585960616263646566676869707172737475767778798081828384858687888990919293949596979899";
    for (int i = 6; i >= 0; i -= 2, x /= 100)
        memcpy(out + i, pairs + 2 * (x % 100), 2);
}

static void split_digits(uint64_t x, char *out) {
    uint64_t high = x / 100000000;
    out[0] = (char)('0' + high / 100000000);
    split_eight((uint32_t)(high % 100000000), out + 1);
    split_eight((uint32_t)(x % 100000000), out + 9);
}

// Seventeen digits d[0] . d[1] ... times 10^exponent in printf's %g form: no zeros at the end, no power
// between -4 and 16.
static size_t write_digits(const char *d, int exponent, char *out) {
    int n = 17;
    while (n > 1 && d[n - 1] == '0')
        n--;
    char *p = out;
    if (exponent < -4 || exponent >= 17) {
        *p++ = d[0];
        if (n > 1) *p++ = '.';
        for (int i = 1; i < n; i++)
            *p++ = d[i];
        int e = exponent < 0 ? -exponent : exponent;
        *p++ = 'e';
        *p++ = exponent < 0 ? '-' : '+';
        *p++ = (char)('0' + e / 10);
        *p++ = (char)('0' + e % 10);
    } else if (exponent < 0) {
        *p++ = '0';
        *p++ = '.';
        for (int i = -1; i > exponent; i--)
            *p++ = '0';
        for (int i = 0; i < n; i++)
            *p++ = d[i];
    } else {
        for (int i = 0; i <= exponent; i++)
            *p++ = i < n ? d[i] : '0';
        if (n > exponent + 1) *p++ = '.';
        for (int i = exponent + 1; i < n; i++)
            *p++ = d[i];
    }
    return (size_t)(p - out);
}

size_t cli_number_format(double x, char *buf) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    size_t sign = bits >> 63;
    double a = fabs(x);
    if (a == 0) {
        memcpy(buf, "-0", 2);
        if (!sign) buf[0] = '0';
        return 1 + sign;
    }
    if (!(a >= 1e-22 && a < 9007199254740992.0)) return (size_t)snprintf(buf, CLI_NUMBER_MAX, "%.17g", x);
    buf[0] = '-';

    int e = (int)((bits >> 52) & 2047) - 1075;
    uint64_t m = (bits & (((uint64_t)1 << 52) - 1)) | ((uint64_t)1 << 52);
    // The decimal exponent from the binary one (log10 2 = 0.30103), at most one too small; the digits decide.
    int exponent = (int)floor((e + 52) * 0.30102999566398120);
    const uint64_t ten16 = 10000000000000000u, ten17 = 10 * ten16;
    const u128 *power = powers();
    uint64_t digits = 0;
    for (;; exponent++) {
        // k may reach 39 only when the guess is one too small, and then the next iteration is the right one.
        if (16 - exponent >= N_POWER) continue;
        digits = scale_and_round(m, power[16 - exponent], -e);
        if (digits < ten17) break;
    }
    if (digits < ten16) return (size_t)snprintf(buf, CLI_NUMBER_MAX, "%.17g", x);
    char text[17];
    split_digits(digits, text);
    return sign + write_digits(text, exponent, buf + sign);
}
