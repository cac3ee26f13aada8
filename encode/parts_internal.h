/* encode/parts_internal.h - the matrices of each encoder, by the names of methods 5.2. */
#ifndef ENCODE_PARTS_INTERNAL_H
#define ENCODE_PARTS_INTERNAL_H

enum { GQE_W1, GQE_B1, GQE_W2, GQE_B2, GQE_W3, GQE_PARTS };

/* A norm's gain is followed by its bias, a network's matrix by its bias. */
enum {
	Q2P_OFFSETS,
	/* step */
	Q2P_WZ,
	Q2P_UZ,
	Q2P_WG,
	Q2P_UG,
	Q2P_WH,
	Q2P_UH,
	Q2P_STEP_NORM1,
	Q2P_STEP_ATTENTION = Q2P_STEP_NORM1 + 2,
	Q2P_STEP_NORM2,
	/* blocks of attention, norm, network, norm: before a later step; AND, first and second */
	Q2P_LATER = Q2P_STEP_NORM2 + 2,
	Q2P_BLOCK = 9,
	Q2P_MEET1 = Q2P_LATER + Q2P_BLOCK,
	Q2P_MEET2 = Q2P_MEET1 + Q2P_BLOCK,
	Q2P_PARTS = Q2P_MEET2 + Q2P_BLOCK,
};

/* Within a block. */
enum { BLOCK_ATTENTION, BLOCK_NORM1, BLOCK_F1 = 3, BLOCK_F2 = 5, BLOCK_NORM2 = 7 };

enum {
	LSTM_WI,
	LSTM_UI,
	LSTM_WF,
	LSTM_UF,
	LSTM_WO,
	LSTM_UO,
	LSTM_WU,
	LSTM_UU,
	LSTM_AND,
	LSTM_OR,
	LSTM_PARTS
};

#endif
