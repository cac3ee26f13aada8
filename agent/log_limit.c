#include "agent/log_limit.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { ANEW = 4 }; /* after so many gaps without a line the first one is printed at once again */

static uint64_t id_of(const void *subject, size_t n, const char *cause)
{
	crypto_generichash_state h;
	uint8_t out[16];
	uint64_t id;

	crypto_generichash_init(&h, NULL, 0, 16);
	crypto_generichash_update(&h, (const uint8_t *)cause, strlen(cause) + 1);
	crypto_generichash_update(&h, subject, n);
	crypto_generichash_final(&h, out, sizeof(out));
	memcpy(&id, out, sizeof(id));
	return id != 0 ? id : 1;
}

static bool holds(const struct log_limit_pair *p)
{
	return p->held[0].n > 0;
}

/* What is told late says so: the log's own time is that of the telling. */
static void tell_one(struct log_limit *l, struct log_limit_held *h, uint64_t now_ms)
{
	unsigned long long n = h->n, age_s = (now_ms - h->at_ms) / 1000;
	const char *last = h->mixed ? ", " : ", last ";
	char line[LOG_LIMIT_TEXT + 96], count[48] = "", age[32] = "";

	if (n > 1)
		snprintf(count, sizeof(count),
			 h->mixed ? "the last of %llu like it" : "repeated %llu times", n);
	if (age_s > 0)
		snprintf(age, sizeof(age), "%s%llu s ago", n > 1 ? last : "", age_s);
	snprintf(line, sizeof(line), "%s (%s%s)", h->text, count, age);
	l->print(l->ctx, h->level, n > 1 || age_s > 0 ? line : h->text);
	*h = (struct log_limit_held){ 0 };
}

static void tell(struct log_limit *l, struct log_limit_pair *p, uint64_t now_ms)
{
	for (size_t i = 0; i < LOG_LIMIT_TEXTS && p->held[i].n > 0; i++)
		tell_one(l, &p->held[i], now_ms);
}

/* Where a line is kept: with its equals, or by itself, or in the last place. */
static struct log_limit_held *place_for(struct log_limit_pair *p, const char *text)
{
	size_t i = 0;

	while (i < LOG_LIMIT_TEXTS - 1 && p->held[i].n > 0 && strcmp(p->held[i].text, text) != 0)
		i++;
	return &p->held[i];
}

static void keep(struct log_limit_pair *p, enum log_level level, const char *text, uint64_t now_ms)
{
	struct log_limit_held *h = place_for(p, text);

	h->mixed |= h->n > 0 && strcmp(h->text, text) != 0;
	h->n++;
	h->at_ms = now_ms;
	h->level = level;
	snprintf(h->text, sizeof(h->text), "%s", text);
}

static struct log_limit_pair *pair_of(struct log_limit *l, uint64_t id, uint64_t now_ms)
{
	struct log_limit_pair *oldest = &l->pair[0];

	for (size_t i = 0; i < LOG_LIMIT_PAIRS; i++) {
		struct log_limit_pair *p = &l->pair[i];

		if (p->id == id)
			return p;
		if (p->last_ms < oldest->last_ms || (p->id == 0 && oldest->id != 0))
			oldest = p;
	}
	tell(l, oldest, now_ms);
	*oldest = (struct log_limit_pair){ .id = id };
	return oldest;
}

void log_limit_line(struct log_limit *l, const void *subject, size_t n, const char *cause,
		    enum log_level level, uint64_t now_ms, const char *fmt, ...)
{
	struct log_limit_pair *p = pair_of(l, id_of(subject, n, cause), now_ms);
	bool anew =
		p->gap_ms == 0 || (!holds(p) && now_ms - p->last_ms > (uint64_t)ANEW * p->gap_ms);
	char text[LOG_LIMIT_TEXT];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	p->last_ms = now_ms;
	if (!anew) {
		keep(p, level, text, now_ms);
		log_limit_tick(l, now_ms);
		return;
	}
	l->print(l->ctx, level, text);
	p->gap_ms = LOG_LIMIT_GAP_MIN_MS;
	p->next_ms = now_ms + p->gap_ms;
}

void log_limit_tick(struct log_limit *l, uint64_t now_ms)
{
	for (size_t i = 0; i < LOG_LIMIT_PAIRS; i++) {
		struct log_limit_pair *p = &l->pair[i];

		if (p->id == 0 || !holds(p) || now_ms < p->next_ms)
			continue;
		tell(l, p, now_ms);
		p->gap_ms *= 2;
		if (p->gap_ms > LOG_LIMIT_GAP_MAX_MS)
			p->gap_ms = LOG_LIMIT_GAP_MAX_MS;
		p->next_ms = now_ms + p->gap_ms;
	}
}

void log_limit_flush(struct log_limit *l, uint64_t now_ms)
{
	for (size_t i = 0; i < LOG_LIMIT_PAIRS; i++)
		tell(l, &l->pair[i], now_ms);
}
