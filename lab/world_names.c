/* lab/world_names.c - invented names. */
#include "lab/world_names.h"

#include "base/mem.h"

#define PICK(r, list) ((list)[rng_below((r), sizeof(list) / sizeof((list)[0]))])

static const char *const type_names[WORLD_TYPES] = {
	[WORLD_GENE] = "gene",	     [WORLD_DISEASE] = "disease", [WORLD_DRUG] = "drug",
	[WORLD_SYMPTOM] = "symptom", [WORLD_TISSUE] = "tissue",	  [WORLD_COMPOUND] = "compound",
	[WORLD_VARIANT] = "variant", [WORLD_COHORT] = "cohort",	  [WORLD_PLAN] = "plan",
	[WORLD_STUDY] = "study",     [WORLD_ASSAY] = "assay",
};

const char *world_type_name(enum world_type t)
{
	return type_names[t];
}

static char *gene(struct rng *r)
{
	static const char consonants[] = "BCDFGHKLMNPRSTVXZ", all[] = "ABCDEFGHIKLMNOPRSTUVWXYZ";
	char a = consonants[rng_below(r, sizeof(consonants) - 1)];
	char b = all[rng_below(r, sizeof(all) - 1)], c = all[rng_below(r, sizeof(all) - 1)];
	uint32_t number = 1 + rng_below(r, 19);
	if (rng_below(r, 3) == 0)
		return mem_printf("%c%c%c%uA%u", a, b, c, number, 1 + rng_below(r, 9));
	if (rng_below(r, 4) == 0)
		return mem_printf("%c%c%c%c", a, b, c, consonants[rng_below(r, 17)]);
	return mem_printf("%c%c%c%u", a, b, c, number);
}

static char *drug(uint32_t area, struct rng *r)
{
	static const char *const first[] = {
		"Ab", "Bel", "Cor", "Dav", "El",  "Fos", "Gal", "Ib",  "Kel", "Lum", "Mir", "Nor",
		"Ox", "Pel", "Rav", "Sor", "Tal", "Ur",	 "Ven", "Xel", "Zan", "Om",  "Pra", "Trel"
	};
	static const char *const middle[] = { "a",   "aci", "ebu", "ide", "olu", "eri",
					      "ami", "uva", "oxi", "ena", "ivo", "ota",
					      "ela", "usi", "ari", "opi" };
	static const char *const stem[6][3] = {
		{ "lol", "pril", "sartan" },	    { "pram", "zepine", "triptan" },
		{ "tinib", "ciclib", "mab" },	    { "limus", "kinra", "cept" },
		{ "gliptin", "statin", "glutide" }, { "terol", "lukast", "sonide" },
	};
	const char *a = PICK(r, first), *b = PICK(r, middle);
	return mem_printf("%s%s%s", a, b, stem[area % 6][rng_below(r, 3)]);
}

static const char *surname(struct rng *r)
{
	static const char *const names[] = { "Hollister", "Venn",     "Okafor",	   "Lindqvist",
					     "Marchetti", "Tanaka",   "Brandvold", "Castellan",
					     "Duarte",	  "Eberhart", "Fairlie",   "Grinevich",
					     "Halloran",  "Ibarra",   "Jansky",	   "Kessler" };
	return PICK(r, names);
}

static char *disease(uint32_t area, struct rng *r)
{
	static const char *const kind[] = { "juvenile", "familial",  "chronic", "late-onset",
					    "atypical", "recurrent", "diffuse", "idiopathic" };
	static const char *const organ[6][4] = {
		{ "cardio", "vaso", "arterio", "phlebo" },
		{ "neuro", "cerebello", "myelo", "axono" },
		{ "hepato", "angio", "lympho", "melano" },
		{ "arthro", "dermato", "sero", "thymo" },
		{ "nephro", "pancreato", "lipo", "thyro" },
		{ "broncho", "pleuro", "rhino", "alveolo" },
	};
	static const char *const ending[] = { "pathy", "sclerosis", "dystrophy", "stenosis",
					      "penia", "plasia",    "malacia",	 "trophy" };
	const char *o = organ[area % 6][rng_below(r, 4)];
	if (rng_below(r, 3) == 0) {
		const char *a = surname(r), *b = surname(r);
		return mem_printf("%s-%s syndrome", a, b);
	}
	const char *k = PICK(r, kind), *end = PICK(r, ending);
	if (rng_below(r, 2) == 0)
		return mem_printf("%s %s%s type %u", k, o, end, 1 + rng_below(r, 3));
	return mem_printf("%s %s%s", k, o, end);
}

static char *symptom(struct rng *r)
{
	static const char *const how[] = { "nocturnal",	 "intermittent", "persistent", "sudden",
					   "mild",	 "severe",	 "morning",    "post-meal",
					   "exertional", "migrating" };
	static const char *const what[] = { "cough",	"fatigue",   "tremor",	    "rash",
					    "nausea",	"oedema",    "fever",	    "vertigo",
					    "pain",	"stiffness", "dyspnoea",    "pruritus",
					    "pallor",	"numbness",  "palpitation", "insomnia",
					    "weakness", "headache" };
	const char *h = PICK(r, how), *w = PICK(r, what);
	return mem_printf("%s %s", h, w);
}

static char *tissue(struct rng *r)
{
	static const char *const where[] = { "left",  "right", "upper", "lower",
					     "inner", "outer", "foetal" };
	static const char *const what[] = { "ventricle", "cortex",   "lobe",	   "mucosa",
					    "medulla",	 "atrium",   "epithelium", "stroma",
					    "plexus",	 "islets",   "marrow",	   "capsule",
					    "ganglion",	 "synovium", "cerebellum", "bronchus" };
	const char *a = PICK(r, where), *b = PICK(r, what);
	return mem_printf("%s %s", a, b);
}

char *world_draw_name(enum world_type t, uint32_t area, struct rng *r)
{
	static const char *const season[] = { "spring", "summer", "autumn", "winter" };
	static const char *const metal[] = { "Bronze", "Silver", "Gold", "Platinum" };
	switch (t) {
	case WORLD_GENE:
		return gene(r);
	case WORLD_DISEASE:
		return disease(area, r);
	case WORLD_DRUG:
		return drug(area, r);
	case WORLD_SYMPTOM:
		return symptom(r);
	case WORLD_TISSUE:
		return tissue(r);
	case WORLD_COMPOUND:
		return mem_printf("MX-%05u", rng_below(r, 100000));
	case WORLD_VARIANT:
		return mem_printf("rs%u", 1000000 + rng_below(r, 89000000));
	case WORLD_COHORT: {
		uint32_t ward = 1 + rng_below(r, 40);
		const char *when = PICK(r, season);
		return mem_printf("ward %u, %s %u", ward, when, 2012 + rng_below(r, 12));
	}
	case WORLD_PLAN: {
		const char *m = PICK(r, metal);
		return mem_printf("Plan %s %u", m, 100 + rng_below(r, 800));
	}
	case WORLD_STUDY: {
		const char *who = surname(r);
		return mem_printf("%s lab, study %u", who, 1 + rng_below(r, 900));
	}
	case WORLD_ASSAY:
	default:
		return mem_printf("AX-%u panel", 100 + rng_below(r, 9900));
	}
}

char *world_code(enum world_type t, uint32_t number, struct rng *r)
{
	if (t == WORLD_DISEASE)
		return mem_printf("DX%03u.%u", 100 + number, rng_below(r, 10));
	if (t == WORLD_DRUG)
		return mem_printf("RX-%05u-%u", 10000 + number * 7, rng_below(r, 10));
	return mem_printf("ENT%08u", 20000000 + number * 131 + rng_below(r, 100));
}
