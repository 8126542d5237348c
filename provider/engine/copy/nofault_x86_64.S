/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Accesses that may fault, for x86-64; see nofault.h.
 *
 * Convention at each load and store of the section: RCX + R9 is the number of
 * bytes that have not been copied.  The functions have no stack frame, so
 * that the fix-up can return from any of them.
 *
 * Stores are in order (TSO), except within REP MOVSB; the last word comes
 * after that.
 */
/* REP MOVSB from this length on; below it the start of REP MOVSB is slower. */
#define REP_BYTES 1024

#define FUNCTION(name) \
	.globl name; .hidden name; .type name, @function; .p2align 5; \
name:	.cfi_startproc; endbr64
#define END(name) .cfi_endproc; .size name, . - name

	.text
	.globl	nofault_code_begin, nofault_code_end
	.hidden	nofault_code_begin, nofault_code_end
nofault_code_begin:

/*
 * rdi: dst, rsi: src, rdx: len
 *
 * rcx: bytes of the head, which is all but the last word; r8: the last word,
 * loaded first because the buffers may overlap; r9: its size; r10: its
 * destination
 */
FUNCTION(nofault_code_copy)
	movl	%edi, %eax
	orl	%edx, %eax
	movl	$8, %r9d
	testb	$7, %al
	jnz	.Lnot_8
	leaq	-8(%rdx), %rcx
	movq	(%rsi,%rcx), %r8
	leaq	(%rdi,%rcx), %r10
	testq	%rcx, %rcx
	jnz	.Lhead
.Lstore_8:
	movq	%r8, (%r10)
	xorl	%eax, %eax
	ret
.Lnot_8:
	movl	$4, %r9d
	testb	$3, %al
	jnz	.Lnot_4
	leaq	-4(%rdx), %rcx
	movl	(%rsi,%rcx), %r8d
	leaq	(%rdi,%rcx), %r10
	testq	%rcx, %rcx
	jnz	.Lhead
.Lstore_4:
	movl	%r8d, (%r10)
	xorl	%eax, %eax
	ret
.Lnot_4:
	movl	$1, %r9d
	leaq	-1(%rdx), %rcx
	movzbl	(%rsi,%rcx), %r8d
	leaq	(%rdi,%rcx), %r10
	testq	%rcx, %rcx
	jnz	.Lhead
.Lstore_1:
	movb	%r8b, (%r10)
	xorl	%eax, %eax
	ret

	/* the head: rcx > 0 bytes; backward if dst is inside of src */
	.p2align 4
.Lhead:
	movq	%rdi, %rax
	subq	%rsi, %rax
	cmpq	%rcx, %rax
	jb	.Lbackward
	cmpq	$REP_BYTES, %rcx
	jae	.Lrep
	cmpq	$64, %rcx
	jb	.Lless_64
	.p2align 4
.Lmore_64:
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	32(%rsi), %xmm2
	movups	48(%rsi), %xmm3
	movups	%xmm0, (%rdi)
	movups	%xmm1, 16(%rdi)
	movups	%xmm2, 32(%rdi)
	movups	%xmm3, 48(%rdi)
	addq	$64, %rsi
	addq	$64, %rdi
	subq	$64, %rcx
	cmpq	$64, %rcx
	jae	.Lmore_64
.Lless_64:
	testb	$32, %cl
	jz	1f
	movups	(%rsi), %xmm0
	movups	16(%rsi), %xmm1
	movups	%xmm0, (%rdi)
	movups	%xmm1, 16(%rdi)
	addq	$32, %rsi
	addq	$32, %rdi
	subq	$32, %rcx
1:	testb	$16, %cl
	jz	2f
	movups	(%rsi), %xmm0
	movups	%xmm0, (%rdi)
	addq	$16, %rsi
	addq	$16, %rdi
	subq	$16, %rcx
2:	testb	$8, %cl
	jz	3f
	movq	(%rsi), %rax
	movq	%rax, (%rdi)
	addq	$8, %rsi
	addq	$8, %rdi
	subq	$8, %rcx
3:	testb	$4, %cl
	jz	4f
	movl	(%rsi), %eax
	movl	%eax, (%rdi)
	addq	$4, %rsi
	addq	$4, %rdi
	subq	$4, %rcx
4:	testq	%rcx, %rcx
	jz	.Ltail
5:	movzbl	(%rsi), %eax
	movb	%al, (%rdi)
	incq	%rsi
	incq	%rdi
	decq	%rcx
	jnz	5b
.Ltail:
	cmpl	$4, %r9d
	ja	.Lstore_8
	je	.Lstore_4
	jmp	.Lstore_1
.Lrep:
	rep movsb
	jmp	.Ltail

.Lbackward:
	cmpq	$16, %rcx
	jb	6f
	movups	-16(%rsi,%rcx), %xmm0
	movups	%xmm0, -16(%rdi,%rcx)
	subq	$16, %rcx
	jnz	.Lbackward
	jmp	.Ltail
6:	movzbl	-1(%rsi,%rcx), %eax
	movb	%al, -1(%rdi,%rcx)
	decq	%rcx
	jnz	6b
	jmp	.Ltail
END(nofault_code_copy)

/* rdi: src */
FUNCTION(nofault_code_probe)
	xorl	%ecx, %ecx
	movl	$1, %r9d
	movzbl	(%rdi), %eax
	xorl	%eax, %eax
	ret
END(nofault_code_probe)

/* rdi: word, rsi: add */
FUNCTION(nofault_code_fetch_add)
	xorl	%ecx, %ecx
	movl	$8, %r9d
	lock xaddq %rsi, (%rdi)
	movq	%rsi, %rdx
	xorl	%eax, %eax
	ret
END(nofault_code_fetch_add)

/* rdi: word, rsi: compare, rdx: swap */
FUNCTION(nofault_code_cas)
	xorl	%ecx, %ecx
	movl	$8, %r9d
	movq	%rsi, %rax
	lock cmpxchgq %rdx, (%rdi)
	movq	%rax, %rdx
	xorl	%eax, %eax
	ret
END(nofault_code_cas)

nofault_code_end:

/* rdx: the fault's address, set by the signal handler */
FUNCTION(nofault_code_fixup)
	leaq	(%rcx,%r9), %rax
	ret
END(nofault_code_fixup)

	.section .note.GNU-stack, "", @progbits

	/* NT_GNU_PROPERTY_TYPE_0: GNU_PROPERTY_X86_FEATURE_1_IBT | SHSTK */
	.section .note.gnu.property, "a"
	.p2align 3
	.long	4, 16, 5
	.asciz	"GNU"
	.long	0xc0000002, 4, 3, 0
