// Broken interface files: each gets its own error with status, file, line and remedy.
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "understudy/interface.h"

typedef struct row {
    const char *name;   // tests/bad/interface/NAME
    const char *where;  // the file that the error names
    us_status status;
    int line;
    const char *message;  // a part of it
} row;

static const row files[] = {
    {"ArrayBroken.msg", "ArrayBroken.msg", US_ERR_SYNTAX, 1, "\"float64[3\" is no array"},
    {"ArrayOfNone.msg", "ArrayOfNone.msg", US_ERR_VALUE, 1, "0 is no length of an array"},
    {"ConstantBroken.msg", "ConstantBroken.msg", US_ERR_VALUE, 1, "\"fast\" is no number"},
    {"ConstantTwice.msg", "ConstantTwice.msg", US_ERR_NAME, 2,
     "\"interface::msg::ConstantTwice::MODE\" is there already"},
    {"CycleA.msg", "CycleB.msg", US_ERR_TREE, 2, "\"CycleA\" contains itself"},
    {"CycleB.msg", "CycleA.msg", US_ERR_TREE, 1, "\"CycleB\" contains itself"},
    {"MemberTwice.msg", "MemberTwice.msg", US_ERR_NAME, 2, "the member \"q\" is there twice"},
    {"NameMissing.msg", "NameMissing.msg", US_ERR_SYNTAX, 1,
     "the name behind \"float64\" is missing or no name"},
    {"PackageUnknown.msg", "PackageUnknown.msg", US_ERR_NAME, 1, "there is no type \"nowhere_msgs/Thing\""},
    {"PartMissing.action", "PartMissing.action", US_ERR_SYNTAX, 4, "an action has 3 parts"},
    {"PartMissing.srv", "PartMissing.srv", US_ERR_SYNTAX, 2, "a service has 2 parts"},
    {"PartTooMany.srv", "PartTooMany.srv", US_ERR_SYNTAX, 5, "a service has 2 parts"},
    {"PartUnknown.action", "PartUnknown.action", US_ERR_NAME, 5, "there is no type \"Thing\""},
    {"Service.msg", "Service.msg", US_ERR_SYNTAX, 2,
     "a line of dashes stands between the parts of a service, not in a message"},
    {"StringBound.msg", "StringBound.msg", US_ERR_VALUE, 1, "\"x\" is no length of a string"},
    {"TypeStrange.msg", "TypeStrange.msg", US_ERR_SYNTAX, 1, "\"float64*\" is no type"},
    {"TypeUnknown.msg", "TypeUnknown.msg", US_ERR_NAME, 1, "there is no type \"Thing\""},
    {"WideString.msg", "WideString.msg", US_ERR_SYNTAX, 1,
     "wstring is not read: vendors encode it differently"},
    {"annotation_without_end.idl", "annotation_without_end.idl", US_ERR_SYNTAX, 4,
     "an annotation has no end"},
    {"array_of_zero.idl", "array_of_zero.idl", US_ERR_VALUE, 2,
     "the length of an array is not from 1 to 4294967295"},
    {"array_too_large.idl", "array_too_large.idl", US_ERR_LIMIT, 2,
     "16000000000000000000 elements are more than 32 bits count"},
    {"array_without_end.idl", "array_without_end.idl", US_ERR_SYNTAX, 2, "\"]\" is missing before \";\""},
    {"base_is_union.idl", "base_is_union.idl", US_ERR_NAME, 2, "there is no struct \"U\" to inherit"},
    {"base_unknown.idl", "base_unknown.idl", US_ERR_NAME, 1, "there is no struct \"Nobody\" to inherit"},
    {"bound_is_text.idl", "bound_is_text.idl", US_ERR_VALUE, 2,
     "the length of a string is not from 1 to 1073741824"},
    {"bound_negative.idl", "bound_negative.idl", US_ERR_VALUE, 2,
     "the length of a sequence is not from 1 to 4294967295"},
    {"bound_of_brackets.idl", "bound_of_brackets.idl", US_ERR_LIMIT, 2,
     "signs and brackets nest deeper than 32"},
    {"case_twice.idl", "case_twice.idl", US_ERR_VALUE, 3, "two cases have the value 1"},
    {"case_without_member.idl", "case_without_member.idl", US_ERR_SYNTAX, 3,
     "a type is missing before \"}\""},
    {"character_strange.idl", "character_strange.idl", US_ERR_SYNTAX, 2, "'$' means nothing here"},
    {"comment_without_end.idl", "comment_without_end.idl", US_ERR_SYNTAX, 2, "the comment has no end"},
    {"constant_divided_by_zero.idl", "constant_divided_by_zero.idl", US_ERR_VALUE, 2, "a division by 0"},
    {"constant_is_struct.idl", "constant_is_struct.idl", US_ERR_VALUE, 2, "a constant is a number or a text"},
    {"constant_of_other_type.idl", "constant_of_other_type.idl", US_ERR_VALUE, 1,
     "the value of \"A\" is of another type"},
    {"constant_shifted_far.idl", "constant_shifted_far.idl", US_ERR_VALUE, 1, "a shift by 70 bits"},
    {"constant_unknown.idl", "constant_unknown.idl", US_ERR_NAME, 1, "there is no constant \"B\""},
    {"constant_with_bits_of_fraction.idl", "constant_with_bits_of_fraction.idl", US_ERR_VALUE, 1,
     "a fraction has no bits"},
    {"constant_without_value.idl", "constant_without_value.idl", US_ERR_SYNTAX, 1,
     "a value is missing before \";\""},
    {"deep.idl", "deep.idl", US_ERR_LIMIT, 9, "\"S8\" has types inside each other deeper than 8"},
    {"default_twice.idl", "default_twice.idl", US_ERR_VALUE, 3, "the union has two default cases"},
    {"define_with_value.idl", "define_with_value.idl", US_ERR_SYNTAX, 1,
     "#define gives \"LENGTH\" a value: macros are not read"},
    {"directive_unknown.idl", "directive_unknown.idl", US_ERR_SYNTAX, 1, "#import is not known here"},
    {"discriminant_is_float.idl", "discriminant_is_float.idl", US_ERR_VALUE, 1,
     "a union is chosen by a whole number or an enum"},
    {"else_without_if.idl", "else_without_if.idl", US_ERR_SYNTAX, 1,
     "#else has no #if before it in this file"},
    {"endif_missing.idl", "endif_missing.idl", US_ERR_SYNTAX, 4, "an #if has no #endif in this file"},
    {"enum_label_twice.idl", "enum_label_twice.idl", US_ERR_NAME, 3, "\"RED\" is there already"},
    {"enum_without_labels.idl", "enum_without_labels.idl", US_ERR_SYNTAX, 2,
     "the name of a label is missing before \"}\""},
    {"if_with_expression.idl", "if_with_expression.idl", US_ERR_SYNTAX, 1,
     "#if has more than 0 or 1 behind it"},
    {"include_missing.idl", "include_missing.idl", US_ERR_IO, 1, "nowhere.idl\" cannot be read"},
    {"include_without_name.idl", "include_without_name.idl", US_ERR_SYNTAX, 1, "#include names no file"},
    {"interface.idl", "interface.idl", US_ERR_SYNTAX, 1, "\"interface\" begins nothing that is known here"},
    {"itself.idl", "itself.idl", US_ERR_TREE, 2, "\"A\" is not complete here: a type cannot contain itself"},
    {"key_is_sequence.idl", "key_is_sequence.idl", US_ERR_VALUE, 1, "\"A\" has a sequence as its key"},
    {"key_is_union.idl", "key_is_union.idl", US_ERR_VALUE, 2, "\"A\" has a union as its key"},
    {"keylist_member_unknown.idl", "keylist_member_unknown.idl", US_ERR_NAME, 2,
     "#pragma keylist: \"A\" has no member \"y\""},
    {"keylist_struct_unknown.idl", "keylist_struct_unknown.idl", US_ERR_NAME, 2,
     "#pragma keylist: there is no struct \"B\""},
    {"long_double.idl", "long_double.idl", US_ERR_SYNTAX, 2, "long double differs from machine to machine"},
    {"long_word.idl", "long_word.idl", US_ERR_LIMIT, 2, "a word has more than 1023 characters"},
    {"map.idl", "map.idl", US_ERR_SYNTAX, 2, "the type map is not read"},
    {"member_twice.idl", "member_twice.idl", US_ERR_NAME, 3, "the member \"x\" is there twice"},
    {"member_twice_by_base.idl", "member_twice_by_base.idl", US_ERR_NAME, 3,
     "the member \"x\" is there twice"},
    {"member_without_name.idl", "member_without_name.idl", US_ERR_SYNTAX, 2,
     "the name of a member is missing before \";\""},
    {"member_without_semicolon.idl", "member_without_semicolon.idl", US_ERR_SYNTAX, 3,
     "\";\" is missing before \"double\""},
    {"module_is_struct.idl", "module_is_struct.idl", US_ERR_NAME, 2, "\"a\" is there already"},
    {"module_without_end.idl", "module_without_end.idl", US_ERR_SYNTAX, 3, "the module \"a\" has no end"},
    {"modules_deep.idl", "modules_deep.idl", US_ERR_LIMIT, 33, "modules nest deeper than 32"},
    {"mutable.idl", "mutable.idl", US_ERR_SYNTAX, 2, "@mutable asks for another encoding"},
    {"name_long.idl", "name_long.idl", US_ERR_LIMIT, 1, "a name has at most 199 characters"},
    {"not_a_name-.msg", "not_a_name-.msg", US_ERR_NAME, 0, "the file's name is no name of a type"},
    {"number_broken.idl", "number_broken.idl", US_ERR_VALUE, 1, "\"1.5.2\" is no number"},
    {"number_too_large.idl", "number_too_large.idl", US_ERR_VALUE, 1,
     "\"99999999999999999999\" is no whole number"},
    {"optional.idl", "optional.idl", US_ERR_SYNTAX, 2, "@optional asks for another encoding"},
    {"other.txt", "other.txt", US_ERR_NAME, 0, "neither an IDL file nor one of ROS 2"},
    {"sample_too_large.idl", "sample_too_large.idl", US_ERR_LIMIT, 1,
     "a sample of \"A\" would have at least 80000000 bytes"},
    {"sequences_deep.idl", "sequences_deep.idl", US_ERR_LIMIT, 2, "sequences nest deeper than 32"},
    {"struct_empty.idl", "struct_empty.idl", US_ERR_SYNTAX, 2, "the struct \"A\" is empty"},
    {"struct_twice.idl", "struct_twice.idl", US_ERR_NAME, 2, "\"A\" is there already"},
    {"struct_without_end.idl", "struct_without_end.idl", US_ERR_SYNTAX, 3,
     "a type is missing before \"the end\""},
    {"text_without_end.idl", "text_without_end.idl", US_ERR_SYNTAX, 1, "a text has no end"},
    {"type_unknown.idl", "type_unknown.idl", US_ERR_NAME, 2, "there is no type \"Point\""},
    {"union_empty.idl", "union_empty.idl", US_ERR_SYNTAX, 2, "the union \"U\" is empty"},
    {"union_member_without_case.idl", "union_member_without_case.idl", US_ERR_SYNTAX, 2,
     "a union's member has no case"},
    {"union_two_members.idl", "union_two_members.idl", US_ERR_SYNTAX, 3, "a case has two members"},
    {"unsigned_float.idl", "unsigned_float.idl", US_ERR_SYNTAX, 2, "\"unsigned float\" is no type"},
    {"wide_string.idl", "wide_string.idl", US_ERR_SYNTAX, 2, "the type wstring is not read"},
    {"word_unknown.idl", "word_unknown.idl", US_ERR_SYNTAX, 1,
     "\"strukt\" begins nothing that is known here"},
    {"zero_byte.idl", "zero_byte.idl", US_ERR_SYNTAX, 2, "there is a 0 byte in it"},
};
enum { N_FILE = sizeof files / sizeof *files };

static bool is_right(const row *r) {
    char path[512];
    const char *name = path;
    us_interface_def def = us_interface_def_default();
    us_interface *interface_ = NULL;
    us_error err = {0};
    snprintf(path, sizeof path, US_SOURCE_DIR "/tests/bad/interface/%s", r->name);
    def.n_file = 1;
    def.files = &name;
    us_status status = us_interface_load(&def, &interface_, &err);
    us_interface_release(interface_);
    const char *slash = strrchr(err.file, '/');
    if (status == r->status && err.code == status && err.line == r->line && strstr(err.message, r->message) &&
        err.remedy[0] != 0 && slash && strcmp(slash + 1, r->where) == 0)
        return true;
    print_error("%s: %s, %s, line %d: %s (%s)\n", r->name, us_status_text(status), err.file, (int)err.line,
                err.message, err.remedy);
    return false;
}

static void every_broken_file_gets_its_own_error(void **state) {
    (void)state;
    int n_wrong = 0;
    for (int i = 0; i < N_FILE; i++)
        n_wrong += !is_right(&files[i]);
    assert_int_equal(n_wrong, 0);
}

static void every_broken_file_is_in_the_table(void **state) {
    (void)state;
    int n = 0;
    DIR *dir = opendir(US_SOURCE_DIR "/tests/bad/interface");
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir))
        n += e->d_name[0] != '.';
    closedir(dir);
    assert_int_equal(n, N_FILE);
    assert_true(n >= 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_broken_file_gets_its_own_error),
        cmocka_unit_test(every_broken_file_is_in_the_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
