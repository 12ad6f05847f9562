/* web_libc_names.h: the functions of web/libc under names of their own, so that they live beside
 * the system's: included before each of its files (-include, see tests/CMakeLists.txt). */
#ifndef WICK_WEB_LIBC_NAMES_H
#define WICK_WEB_LIBC_NAMES_H

#define abort web_abort
#define atoi web_atoi
#define calloc web_calloc
#define ceil web_ceil
#define cos web_cos
#define erf web_erf
#define erfc web_erfc
#define exp web_exp
#define expf web_expf
#define expm1 web_expm1
#define fabs web_fabs
#define floor web_floor
#define fmax web_fmax
#define fmaxf web_fmaxf
#define fmin web_fmin
#define fminf web_fminf
#define fmod web_fmod
#define free web_free
#define ilogbf web_ilogbf
#define ldexp web_ldexp
#define ldexpf web_ldexpf
#define log web_log
#define log1p web_log1p
#define logf web_logf
#define malloc web_malloc
#define memchr web_memchr
#define memcmp web_memcmp
#define memcpy web_memcpy
#define memmove web_memmove
#define memset web_memset
#define nearbyint web_nearbyint
#define nextafter web_nextafter
#define nextafterf web_nextafterf
#define pow web_pow
#define powf web_powf
#define qsort web_qsort
#define realloc web_realloc
#define rint web_rint
#define round web_round
#define roundf web_roundf
#define sin web_sin
#define snprintf web_snprintf
#define sqrt web_sqrt
#define strcat web_strcat
#define strchr web_strchr
#define strcmp web_strcmp
#define strcspn web_strcspn
#define strlen web_strlen
#define strncmp web_strncmp
#define strnlen web_strnlen
#define strpbrk web_strpbrk
#define strrchr web_strrchr
#define strspn web_strspn
#define strstr web_strstr
#define strtod web_strtod
#define strtol web_strtol
#define strtoul web_strtoul
#define tanh web_tanh
#define vsnprintf web_vsnprintf

#endif
