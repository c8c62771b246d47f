DESCRIPTION "Not BASIC at all"
const x = 3;
function hello(name) {
    return "hello " + name;
}
