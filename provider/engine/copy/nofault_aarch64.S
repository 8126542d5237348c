/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Accesses that may fault, for AArch64; see nofault.h.
 *
 * Convention at each load and store of the section: x3 + x5 is the number of
 * bytes that have not been copied.  The functions have no stack frame, so
 * that the fix-up can return from any of them.
 */
#define FUNCTION(name) \
	.globl name; .hidden name; .type name, %function; .p2align 5; \
name:	.cfi_startproc; hint #38 /* bti jc */
#define END(name) .cfi_endproc; .size name, . - name

	.text
	.globl	nofault_code_begin, nofault_code_end
	.hidden	nofault_code_begin, nofault_code_end
nofault_code_begin:

/*
 * x0: dst, x1: src, x2: len
 *
 * x3: bytes of the head, which is all but the last word; x4: the last word,
 * loaded first because the buffers may overlap; x5: its size; x6: its
 * destination
 */
FUNCTION(nofault_code_copy)
	orr	x7, x0, x2
	tst	x7, #7
	b.ne	.Lnot_8
	mov	x5, #8
	sub	x3, x2, #8
	ldr	x4, [x1, x3]
	b	.Lhead
.Lnot_8:
	tst	x7, #3
	b.ne	.Lnot_4
	mov	x5, #4
	sub	x3, x2, #4
	ldr	w4, [x1, x3]
	b	.Lhead
.Lnot_4:
	mov	x5, #1
	sub	x3, x2, #1
	ldrb	w4, [x1, x3]
.Lhead:
	add	x6, x0, x3
	cbz	x3, .Ltail
	/* backward if dst is inside of src */
	sub	x7, x0, x1
	cmp	x7, x3
	b.lo	.Lbackward
	cmp	x3, #64
	b.lo	.Lless_64
.Lmore_64:
	ldp	q0, q1, [x1]
	ldp	q2, q3, [x1, #32]
	stp	q0, q1, [x0]
	stp	q2, q3, [x0, #32]
	add	x1, x1, #64
	add	x0, x0, #64
	sub	x3, x3, #64
	cmp	x3, #64
	b.hs	.Lmore_64
.Lless_64:
	cmp	x3, #16
	b.lo	.Lless_16
	ldr	q0, [x1]
	str	q0, [x0]
	add	x1, x1, #16
	add	x0, x0, #16
	sub	x3, x3, #16
	b	.Lless_64
.Lless_16:
	tbz	x3, #3, 1f
	ldr	x7, [x1]
	str	x7, [x0]
	add	x1, x1, #8
	add	x0, x0, #8
	sub	x3, x3, #8
1:	cbz	x3, .Ltail
2:	ldrb	w7, [x1]
	strb	w7, [x0]
	add	x1, x1, #1
	add	x0, x0, #1
	subs	x3, x3, #1
	b.ne	2b
.Ltail:
	cmp	x5, #4
	b.hi	3f
	b.eq	4f
	stlrb	w4, [x6]
	mov	x0, #0
	ret
3:	stlr	x4, [x6]
	mov	x0, #0
	ret
4:	stlr	w4, [x6]
	mov	x0, #0
	ret

.Lbackward:
	cmp	x3, #16
	b.lo	5f
	sub	x7, x3, #16
	ldr	q0, [x1, x7]
	str	q0, [x0, x7]
	mov	x3, x7
	cbnz	x3, .Lbackward
	b	.Ltail
5:	sub	x8, x3, #1
	ldrb	w7, [x1, x8]
	strb	w7, [x0, x8]
	mov	x3, x8
	cbnz	x3, 5b
	b	.Ltail
END(nofault_code_copy)

/* x0: src */
FUNCTION(nofault_code_probe)
	mov	x3, #0
	mov	x5, #1
	ldrb	w4, [x0]
	mov	x0, #0
	ret
END(nofault_code_probe)

/* x0: word, x1: add */
FUNCTION(nofault_code_fetch_add)
	mov	x3, #0
	mov	x5, #8
1:	ldaxr	x4, [x0]
	add	x6, x4, x1
	stlxr	w7, x6, [x0]
	cbnz	w7, 1b
	mov	x1, x4
	mov	x0, #0
	ret
END(nofault_code_fetch_add)

/* x0: word, x1: compare, x2: swap */
FUNCTION(nofault_code_cas)
	mov	x3, #0
	mov	x5, #8
1:	ldaxr	x4, [x0]
	cmp	x4, x1
	csel	x6, x2, x4, eq	/* a store in both cases, as on x86-64 */
	stlxr	w7, x6, [x0]
	cbnz	w7, 1b
	mov	x1, x4
	mov	x0, #0
	ret
END(nofault_code_cas)

nofault_code_end:

/* x1: the fault's address, set by the signal handler */
FUNCTION(nofault_code_fixup)
	add	x0, x3, x5
	ret
END(nofault_code_fixup)

	.section .note.GNU-stack, "", %progbits

	/* NT_GNU_PROPERTY_TYPE_0: GNU_PROPERTY_AARCH64_FEATURE_1_BTI | PAC */
	.section .note.gnu.property, "a"
	.p2align 3
	.word	4, 16, 5
	.asciz	"GNU"
	.word	0xc0000000, 4, 3, 0
