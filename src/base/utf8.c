/* UTF-8 as defined by RFC 3629, and the columns a character takes on a terminal. */
#include "scalemodel/base.h"

/* Table of RFC 3629 section 4: the second byte's range depends on the first. */
static size_t sequence_length(unsigned char first, unsigned char *lowest, unsigned char *highest) {
    *lowest = 0x80;
    *highest = 0xBF;
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return 2;
    if (first == 0xE0) *lowest = 0xA0;  /* overlong */
    if (first == 0xED) *highest = 0x9F; /* surrogates */
    if (first >= 0xE0 && first <= 0xEF) return 3;
    if (first == 0xF0) *lowest = 0x90;  /* overlong */
    if (first == 0xF4) *highest = 0x8F; /* above U+10FFFF */
    if (first >= 0xF0 && first <= 0xF4) return 4;
    return 0;
}

size_t sm_utf8_decode(const char *text, size_t length, uint32_t *code) {
    if (length == 0) return 0;
    unsigned char lowest, highest, first = (unsigned char)text[0];
    size_t n = sequence_length(first, &lowest, &highest);
    if (n == 0 || n > length) return 0;
    uint32_t value = n == 1 ? first : first & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) {
        unsigned char byte = (unsigned char)text[i];
        if (byte < lowest || byte > highest) return 0;
        value = value << 6 | (byte & 0x3Fu);
        lowest = 0x80;
        highest = 0xBF;
    }
    *code = value;
    return n;
}

typedef struct range {
    uint32_t first, last;
} range;

/* Unicode 15: general categories Mn, Me and Cf of the scripts met in model names and messages,
 * and the larger blocks whose East_Asian_Width is W or F. */
static const range zero_width[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489},   {0x0591, 0x05BD},  {0x0610, 0x061A}, {0x064B, 0x065F},
    {0x0900, 0x0902}, {0x093C, 0x093C},   {0x0941, 0x0948},  {0x094D, 0x094D}, {0x0E31, 0x0E31},
    {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E},   {0x1AB0, 0x1AFF},  {0x1DC0, 0x1DFF}, {0x200B, 0x200F},
    {0x2060, 0x2065}, {0x206A, 0x206F},   {0x20D0, 0x20F0},  {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
    {0xFEFF, 0xFEFF}, {0xE0001, 0xE007F}, {0xE0100, 0xE01EF}};
static const range double_width[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},
    {0x2E80, 0x303E},   {0x3041, 0x33FF},   {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},
    {0xA960, 0xA97F},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
    {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF},
    {0x1F900, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

static bool within(uint32_t code, const range *ranges, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return true;
    return false;
}

int sm_utf8_width(uint32_t code) {
    if (code < 0x20 || (code >= 0x7F && code < 0xA0)) return -1;
    if (code >= 0x2028 && code <= 0x202E) return -1; /* separators, changes of direction */
    if (code >= 0x2066 && code <= 0x2069) return -1;
    if (code < 0x300) return 1;
    if (within(code, zero_width, sizeof zero_width / sizeof *zero_width)) return 0;
    return within(code, double_width, sizeof double_width / sizeof *double_width) ? 2 : 1;
}

size_t sm_utf8_clean(char *out, size_t size, const char *text, size_t length) {
    if (size == 0) return 0;
    size_t written = 0;
    for (size_t at = 0; at < length;) {
        uint32_t code = 0;
        size_t n = sm_utf8_decode(text + at, length - at, &code);
        bool blank = n == 1 && (code == '\t' || code == '\n' || code == '\r');
        bool shown = n > 0 && sm_utf8_width(code) >= 0;
        size_t wanted = shown ? n : 1;
        if (written + wanted >= size) break;
        for (size_t i = 0; i < wanted; i++)
            out[written + i] = shown ? text[at + i] : (blank ? ' ' : '?');
        written += wanted;
        at += n > 0 ? n : 1;
    }
    out[written] = '\0';
    return written;
}
