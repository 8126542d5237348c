// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * CRC-32 by carry-less multiplication, after "Fast CRC Computation for
 * Generic Polynomials Using PCLMULQDQ Instruction" (Intel, 2009).
 *
 * The bytes are the coefficients of a polynomial over GF(2).  Folding
 * multiplies a block by x^distance modulo the polynomial of the CRC and adds
 * (xors) it to the block at that distance, until 16 bytes are left.  A
 * Barrett reduction makes the CRC of those.  Bits are reflected, so the
 * constants have 33 bits: X_n is x^n.
 */
#include "crc32_impl.h"

#ifdef WIRE_CRC32_X86
#include <immintrin.h>

#define TARGET __attribute__((target("sse4.1,pclmul")))
#define TARGET_AVX __attribute__((target("avx2,pclmul,vpclmulqdq")))
#define TARGET_512 \
	__attribute__((target("avx2,avx512f,avx512vl,pclmul,vpclmulqdq")))

#define X_64 0x163cd6124
#define X_96 0x0ccaa009e
#define X_160 0x1751997d0
#define X_480 0x1c6e41596
#define X_544 0x154442bd4
#define X_992 0x14a7fe880
#define X_1056 0x1e88ef372
#define X_2016 0x1322d1430
#define X_2080 0x11542778a
#define POLYNOMIAL 0x1db710641
#define QUOTIENT 0x1f7011641 /* x^64 / POLYNOMIAL, for Barrett */

TARGET static inline __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i_u *)p);
}

/* Fold x into next, over the distance for which k has the constants. */
TARGET static inline __m128i fold(__m128i x, __m128i k, __m128i next)
{
	return _mm_xor_si128(_mm_xor_si128(_mm_clmulepi64_si128(x, k, 0x00),
					   _mm_clmulepi64_si128(x, k, 0x11)),
			     next);
}

/* Reduce the 16 bytes of x to the state. */
TARGET static inline uint32_t reduce(__m128i x)
{
	const __m128i low = _mm_set_epi32(0, 0, 0, -1);
	__m128i k = _mm_set_epi64x(X_96, X_160), q;

	x = _mm_xor_si128(_mm_srli_si128(x, 8),
			  _mm_clmulepi64_si128(x, k, 0x10));
	k = _mm_set_epi64x(0, X_64);
	x = _mm_xor_si128(_mm_srli_si128(x, 4),
			  _mm_clmulepi64_si128(_mm_and_si128(x, low), k, 0));
	k = _mm_set_epi64x(QUOTIENT, POLYNOMIAL); /* Barrett reduction */
	q = _mm_clmulepi64_si128(_mm_and_si128(x, low), k, 0x10);
	q = _mm_clmulepi64_si128(_mm_and_si128(q, low), k, 0x00);
	return (uint32_t)_mm_extract_epi32(_mm_xor_si128(x, q), 1);
}

/* Return the state after x and the @n bytes that follow it. */
TARGET static inline uint32_t rest(__m128i x, const uint8_t *p, size_t n)
{
	const __m128i k = _mm_set_epi64x(X_96, X_160);

	for (; n >= 16; n -= 16, p += 16)
		x = fold(x, k, load(p));
	return crc32_tables(reduce(x), p, n);
}

TARGET uint32_t crc32_clmul(uint32_t state, const uint8_t *p, size_t n)
{
	const __m128i first = _mm_cvtsi32_si128((int)state);
	const __m128i near = _mm_set_epi64x(X_96, X_160);
	const __m128i far = _mm_set_epi64x(X_480, X_544);
	__m128i a, b, c, d;

	if (n < 16)
		return crc32_tables(state, p, n);
	a = _mm_xor_si128(load(p), first);
	if (n < 64)
		return rest(a, p + 16, n - 16);
	b = load(p + 16);
	c = load(p + 32);
	d = load(p + 48);
	for (p += 64, n -= 64; n >= 64; p += 64, n -= 64) {
		a = fold(a, far, load(p));
		b = fold(b, far, load(p + 16));
		c = fold(c, far, load(p + 32));
		d = fold(d, far, load(p + 48));
	}
	a = fold(fold(fold(a, near, b), near, c), near, d);
	return rest(a, p, n);
}

/* ------------------------------------------------------- AVX2 */

TARGET_AVX static inline __m256i load2(const uint8_t *p)
{
	return _mm256_loadu_si256((const __m256i_u *)p);
}

TARGET_AVX static inline __m256i fold2(__m256i x, __m256i k, __m256i next)
{
	return _mm256_xor_si256(
		_mm256_xor_si256(_mm256_clmulepi64_epi128(x, k, 0x00),
				 _mm256_clmulepi64_epi128(x, k, 0x11)),
		next);
}

TARGET_AVX static inline __m128i both(__m128i x, __m128i k, __m256i next)
{
	x = fold(x, k, _mm256_castsi256_si128(next));
	return fold(x, k, _mm256_extracti128_si256(next, 1));
}

TARGET_AVX uint32_t crc32_vclmul(uint32_t state, const uint8_t *p, size_t n)
{
	const __m128i near = _mm_set_epi64x(X_96, X_160);
	const __m256i far = _mm256_set_epi64x(X_992, X_1056, X_992, X_1056);
	__m256i a, b, c, d;
	__m128i x;

	if (n < 128)
		return crc32_clmul(state, p, n);
	a = _mm256_xor_si256(load2(p),
			     _mm256_set_epi32(0, 0, 0, 0, 0, 0, 0, (int)state));
	b = load2(p + 32);
	c = load2(p + 64);
	d = load2(p + 96);
	for (p += 128, n -= 128; n >= 128; p += 128, n -= 128) {
		a = fold2(a, far, load2(p));
		b = fold2(b, far, load2(p + 32));
		c = fold2(c, far, load2(p + 64));
		d = fold2(d, far, load2(p + 96));
	}
	x = fold(_mm256_castsi256_si128(a), near,
		 _mm256_extracti128_si256(a, 1));
	x = both(both(both(x, near, b), near, c), near, d);
	return rest(x, p, n);
}

/* ------------------------------------------------------- AVX-512 */

TARGET_512 static inline __m512i load4(const uint8_t *p)
{
	return _mm512_loadu_si512((const void *)p);
}

#define SUM_OF_THREE 0x96 /* truth table: a xor b xor c */

TARGET_512 static inline __m512i fold4(__m512i x, __m512i k, __m512i next)
{
	return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, k, 0x00),
					 _mm512_clmulepi64_epi128(x, k, 0x11),
					 next, SUM_OF_THREE);
}

TARGET_512 static inline __m128i all(__m128i x, __m128i k, __m512i next)
{
	x = fold(x, k, _mm512_castsi512_si128(next));
	x = fold(x, k, _mm512_extracti32x4_epi32(next, 1));
	x = fold(x, k, _mm512_extracti32x4_epi32(next, 2));
	return fold(x, k, _mm512_extracti32x4_epi32(next, 3));
}

TARGET_512 uint32_t crc32_vclmul_512(uint32_t state, const uint8_t *p, size_t n)
{
	const __m128i near = _mm_set_epi64x(X_96, X_160);
	const __m512i far = _mm512_set_epi64(X_2016, X_2080, X_2016, X_2080,
					     X_2016, X_2080, X_2016, X_2080);
	const __m512i first = _mm512_inserti32x4(
		_mm512_setzero_si512(), _mm_cvtsi32_si128((int)state), 0);
	__m512i a, b, c, d;
	__m128i x;

	if (n < 256)
		return crc32_vclmul(state, p, n);
	a = _mm512_xor_si512(load4(p), first);
	b = load4(p + 64);
	c = load4(p + 128);
	d = load4(p + 192);
	for (p += 256, n -= 256; n >= 256; p += 256, n -= 256) {
		a = fold4(a, far, load4(p));
		b = fold4(b, far, load4(p + 64));
		c = fold4(c, far, load4(p + 128));
		d = fold4(d, far, load4(p + 192));
	}
	x = all(_mm_setzero_si128(), near, a);
	x = all(all(all(x, near, b), near, c), near, d);
	return rest(x, p, n);
}
#endif
