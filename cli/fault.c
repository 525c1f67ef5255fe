// understudy fault: lets a part of a robot that runs fail, or mends it. The world command of the same name,
// through `tell`.
#include <string.h>

#include "cli.h"

static int run(const cli_command *command, int argc, char **argv) {
    if (argc != 3 || argv[1][0] == '-') {
        const char *robot = NULL;
        cli_list rest = {0};
        const cli_option table[] = {{"FAULT", CLI_REST, &rest, NULL, NULL}};
        int code = cli_parse(command, table, 1, argc, argv, &robot);
        if (code != CLI_GO_ON) return code;
        return cli_fail(CLI_BAD_INPUT, "understudy fault", "write understudy fault ROBOT motor:JOINT=dead",
                        "%s", rest.n == 0 ? "a robot and its fault are needed" : "one fault at a time");
    }
    char tell[] = "tell", fault[] = "fault";
    char *words[] = {tell, fault, argv[1], argv[2], NULL};
    return cli_command_tell.run(&cli_command_tell, 4, words);
}

const cli_command cli_command_fault = {
    .name = "fault",
    .operand = "ROBOT",
    .needs_operand = true,
    .summary = "let a part of a robot fail while it runs, or mend it",
    .about = "The world command of the same name. PART=ok undoes any of them:\n"
             "  motor:JOINT=dead, weak:SHARE (of its strength that is left), blocked, blocked:TORQUE (N m or "
             "N of friction)\n"
             "  joint:JOINT=broken: what hangs on it falls; only reset and restore bring it back\n"
             "  encoder:JOINT=stuck, jump:ANGLE (rad, for good), drift:SPEED (rad/s)\n"
             "  imu=bias:AX,AY,AZ[,GX,GY,GZ] (m/s^2, rad/s), stuck\n"
             "  power=brownout[:SECONDS]: neither computer nor motors, then the computer starts\n"
             "  computer=reboot[:SECONDS] (5): silent, then as after power-on\n"
             "  link=outage[:SECONDS], loss:PROBABILITY, delay:SECONDS: both directions\n"
             "Exit codes as of tell: 0 done, 2 refused, 3 nobody answers.\n"
             "\n"
             "Examples:\n"
             "  understudy fault hexapod motor:front_left_femur=weak:0.3\n"
             "  understudy fault k10 motor:front_left_drive=blocked:5\n"
             "  understudy fault k10 encoder:front_left_drive=stuck\n"
             "  understudy fault k10 power=brownout:2\n"
             "  understudy fault k10 motor:front_left_drive=ok\n"
             "  understudy fault hexapod joint:front_left_femur=broken\n",
    .run = run,
};
