# Writes what `WICK help OPTION` prints to OUTPUT.

execute_process(COMMAND ${WICK} help ${OPTION} OUTPUT_FILE ${OUTPUT} COMMAND_ERROR_IS_FATAL ANY)
