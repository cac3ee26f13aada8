/* tests/cli/json_value.c - json_value FILE KEY...: one value of a JSON file, as member() of lib.sh
 * prints it, without the start of a Python for each look.  KEY=VALUE picks from a list of objects.
 * Exit status 3: no text, whole number or word, so Python has to say how it is written. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *picked(json_t *list, const char *key)
{
	const char *value = strchr(key, '=');
	char name[64], *end;
	long k = strtol(key, &end, 10);
	json_t *one;
	size_t i;

	if (*end == '\0' && end != key)
		return json_array_get(list, (size_t)(k < 0 ? k + (long)json_array_size(list) : k));
	if (value == NULL || (size_t)(value - key) >= sizeof(name))
		return NULL;
	memcpy(name, key, (size_t)(value - key));
	name[value - key] = '\0';
	json_array_foreach(list, i, one)
	{
		json_t *found = json_object_get(one, name);

		if (json_is_string(found) && strcmp(json_string_value(found), value + 1) == 0)
			return one;
	}
	return NULL;
}

int main(int argc, char **argv)
{
	json_t *j = argc > 1 ? json_load_file(argv[1], JSON_DECODE_ANY, NULL) : NULL;

	if (j == NULL)
		return 3;
	for (int i = 2; i < argc && j != NULL; i++)
		j = json_is_array(j) ? picked(j, argv[i]) : json_object_get(j, argv[i]);
	if (j == NULL) {
		fprintf(stderr, "json_value: %s has no such value\n", argv[1]);
		return 1;
	}
	if (json_is_string(j))
		puts(json_string_value(j));
	else if (json_is_integer(j))
		printf("%" JSON_INTEGER_FORMAT "\n", json_integer_value(j));
	else if (json_is_boolean(j))
		puts(json_is_true(j) ? "True" : "False");
	else if (json_is_null(j))
		puts("None");
	else
		return 3;
	return 0;
}
