DESCRIPTION "Literals over several lines"

config = #{
    name: "demo",
    tags: ["a", "b", "c"],
    limits: #{
        low: 1,
        high: 99
    },
    "with space": TRUE
}

matrix = [
    [1, 2, 3],
    [4, 5, 6],
    [7, 8, 9]
]

diagonal = 0
FOR i = 0 TO 2
    diagonal = diagonal + matrix[i][i]
NEXT i

config.limits.high = 100
config["owner"] = "me"
matrix[0][2] = 30

TALK config.name + " " + config.tags[1] + " " + config.limits.high
TALK "diagonal " + diagonal + ", corner " + matrix[0][2]
TALK TOJSON({ "ok": config["with space"], "owner": config.owner })
RETURN config.tags
