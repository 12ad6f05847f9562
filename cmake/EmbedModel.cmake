# Writes the bytes of INPUT as a C file of 64-bit words to OUTPUT (little-endian, as GGUF is): words
# keep the file and its compile time small.

file(READ ${INPUT} hex HEX)
file(SIZE ${INPUT} size)
math(EXPR tail "${size} % 8")
while(NOT tail EQUAL 0)
    string(APPEND hex 00)
    math(EXPR tail "(${tail} + 1) % 8")
endwhile()

string(REPEAT "(..)" 8 word)
string(REGEX REPLACE ${word} "    0x\\8\\7\\6\\5\\4\\3\\2\\1,\n" words "${hex}")
file(WRITE ${OUTPUT} "/* Generated from stories260K.gguf by cmake/EmbedModel.cmake. */
#include \"embedded_model.h\"

static const _Alignas(64) uint64_t words[] = {
${words}};

const unsigned char *const wick_embedded_model = (const unsigned char *)words;
const size_t wick_embedded_model_size = ${size};
")
