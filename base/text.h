/* base/text.h - bytes that came from outside, before they are believed to be text.
 *
 * Well-formed is UTF-8 as RFC 3629 has it.  Control characters are U+0000 to U+001F and U+007F to
 * U+009F: a terminal may obey them. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the well-formed character that begins at s, of which n bytes are there; 0: none. */
size_t text_step(const char *s, size_t n);
/* Bytes of the control character that begins at s: 1 or 2; 0: none. */
size_t text_control(const char *s, size_t n);
/* Well-formed, and no control character in it. */
bool text_printable(const char *s, size_t n);
/* Is a control of direction in it?  What follows one on a line is shown in another order, so none
 * stands in an agent's name (Unicode: Bidi_Control). */
bool text_has_bidi(const char *s);
void text_mark_bidi(char *s); /* '?' stands for each byte of one */
/* Makes the string so: '?' stands for each byte that belongs to no printable character, such as
 * the rest of one where a text was cut to its room. */
void text_mark(char *s);

enum { TEXT_WORD = 512 };

/* The string as one word for a shell, in commands that are shown: itself, or in quotes in `room`
 * where it must be; longer than that, itself all the same. */
const char *text_word(const char *s, char room[TEXT_WORD]);

enum { TEXT_FIGURE = 32 };

/* The number with so many decimals, as it is shown; "unknown": NAN. */
const char *text_figure(double x, int decimals, char room[TEXT_FIGURE]);

#endif
