//go:build !purego

#include "textflag.h"

// The fields of patterns, 32 bytes each.
#define lower   (5*32)(DX) // the bit of lower case, and the highest white space
#define letterA (6*32)(DX)
#define letters (7*32)(DX)
#define slash   (8*32)(DX)
#define nibble  (9*32)(DX)
#define low1    (10*32)(DX)
#define high1   (11*32)(DX)
#define low2    (12*32)(DX)
#define high2   (13*32)(DX)

// Bitmaps of a block: of single bytes, and of each '<' that bears a link or
// changes something, or may.
#define open   0(SP)
#define close  8(SP)
#define double 16(SP)
#define single 24(SP)
#define before 32(SP) // what a quote that begins a value may come behind: '=', white space
#define look   40(SP)

// BEGIN readies what MAPTAGS keeps from block to block: R8 is whether a tag is open, R9
// whether that may be in a value that has begun, R10 whether the last byte may come
// before a value, R11 which blocks have doubts.
#define BEGIN \
	XORL R8, R8 \
	XORL R9, R9 \
	XORL R10, R10 \
	XORL R11, R11

// MAPTAGS maps the tags of a block by the bitmaps of its bytes. Sums find ends: a bit that is added to
// a run of ones goes to where the run ends.
#define MAPTAGS \
	MOVQ    close, BX \
	MOVQ    open, AX \
	MOVQ    BX, R12 \
	NOTQ    R12 \
	ADDQ    AX, R12 \
	ADDQ    R8, R12 \ // at each '>' that ends a tag, and at each '<' in one
	XORL    R15, R15 \
	TESTQ   BX, BX \
	CMOVQEQ R8, R15 \ // a doubt: a long one
	MOVQ    BX, R13 \
	ORQ     R12, R13 \
	NOTQ    R13 \ // in a tag, and no '<' in it
	ANDQ    R12, BX \ // each '>' that ends a tag
	ANDQ    AX, R12 \ // each '<' in one
	ORQ     R12, R15 \
	XORQ    R12, AX \
	MOVQ    AX, 0(DI) \
	ORQ     R13, R12 \
	MOVQ    R12, 8(DI) \
	SHRQ    $63, R12 \
	MOVQ    R12, R8 \
	ORQ     look, R15 \
	MOVQ    single, AX \
	ANDQ    R13, AX \
	ORQ     AX, R15 \
	MOVQ    before, AX \
	LEAQ    (R10)(AX*2), R12 \
	SHRQ    $63, AX \
	MOVQ    AX, R10 \
	MOVQ    double, AX \
	MOVQ    AX, 24(DI) \
	ANDQ    R13, R12 \
	ANDQ    AX, R12 \ // each '"' that may begin a value
	ANDNQ   R13, AX, AX \ // what may be in one
	LEAQ    (R12)(R12*1), R13 \
	ADDQ    R13, R9 \
	ADDQ    AX, R9 \ // where what may be a value goes to
	ANDQ    R9, BX \
	ORQ     BX, R15 \
	MOVQ    R15, 16(DI) \
	MOVQ    R13, BX \
	ANDQ    AX, BX \
	ORQ     BX, R12 \
	ORQ     AX, R13 \
	ANDNQ   R13, R9, R13 \
	ORQ     R13, R12 \
	SHRQ    $63, R12 \
	MOVQ    R12, R9 \
	NEGQ    R15 \
	RCRQ    $1, R11

// JOIN makes a bitmap in AX of the bytes of Y6 and Y7 that are all ones.
#define JOIN \
	VPMOVMSKB Y6, AX \
	VPMOVMSKB Y7, BX \
	SHLQ      $32, BX \
	ORQ       BX, AX

// EQUAL finds the bytes of the block, Y4 and Y5, that are the nth pattern.
#define EQUAL(n) \
	VMOVDQU  (n*32)(DX), Y8 \
	VPCMPEQB Y4, Y8, Y6 \
	VPCMPEQB Y5, Y8, Y7

// SORT leaves of the sets in y those that have the bytes of Y8 in them.
#define SORT(low, high, y) \
	VPAND   nibble, Y8, Y9 \
	VMOVDQU low, Y10 \
	VPSHUFB Y9, Y10, Y10 \
	VPAND   Y10, y, y \
	VPSRLW  $4, Y8, Y9 \
	VPAND   nibble, Y9, Y9 \
	VMOVDQU high, Y10 \
	VPSHUFB Y9, Y10, Y10 \
	VPAND   Y10, y, y

// DULL finds in y the bytes from at on that are followed by a slash, or by a
// letter and a byte that together are in no set.
#define DULL(at, y) \
	VMOVDQU  (at+1)(SI), Y8 \
	VPCMPEQB slash, Y8, Y11 \
	VPOR     lower, Y8, Y8 \
	VPSUBB   letterA, Y8, Y9 \
	VPMINUB  letters, Y9, Y10 \
	VPCMPEQB Y9, Y10, Y10 \
	VPOR     Y10, Y11, Y11 \
	VPCMPEQB y, y, y \
	SORT(low1, high1, y) \
	VMOVDQU  (at+2)(SI), Y8 \
	VPOR     lower, Y8, Y8 \
	SORT(low2, high2, y) \
	VPXOR    Y10, Y10, Y10 \
	VPCMPEQB Y10, y, y \
	VPAND    Y11, y, y

// func mapTagsAVX2(dst *tags, src *byte, blocks int, with *patterns) (doubtful uint64)
TEXT ·mapTagsAVX2(SB), NOSPLIT, $48-40
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ blocks+16(FP), CX
	MOVQ with+24(FP), DX
	BEGIN

block:
	VMOVDQU (SI), Y4
	VMOVDQU 32(SI), Y5

	EQUAL(0)
	JOIN
	MOVQ AX, open
	EQUAL(1)
	JOIN
	MOVQ AX, close
	EQUAL(2)
	JOIN
	MOVQ AX, double
	EQUAL(3)
	JOIN
	MOVQ AX, single

	EQUAL(4)
	VMOVDQU  lower, Y8
	VPMINUB  Y4, Y8, Y9
	VPCMPEQB Y4, Y9, Y9
	VPOR     Y9, Y6, Y6
	VPMINUB  Y5, Y8, Y9
	VPCMPEQB Y5, Y9, Y9
	VPOR     Y9, Y7, Y7
	JOIN
	MOVQ AX, before

	DULL(0, Y6)
	DULL(32, Y7)
	JOIN
	NOTQ AX
	ANDQ open, AX
	MOVQ AX, look

	MAPTAGS
	ADDQ $64, SI
	ADDQ $32, DI
	DECQ CX
	JNZ  block
	VZEROUPPER
	MOVQ R11, doubtful+32(FP)
	RET
