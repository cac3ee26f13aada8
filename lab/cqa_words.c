/* lab/cqa_words.c - what cqa.h's arms are called; for who reads files of settings. */
#include "lab/cqa.h"
#include "query/tree.h"

const char *const cqa_arm_words[] = { "local", "central", "fede", "fedr", "fedcqa", NULL };

const unsigned cqa_types = ((1u << (QUERY_UP + 1)) - 1) & ~(1u << QUERY_3P);
