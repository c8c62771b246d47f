REM 员工请假
PARAM name AS string LIKE "王小明" DESCRIPTION "员工姓名"
PARAM days AS integer LIKE 2 DESCRIPTION "请假天数"
PARAM reason AS string LIKE "感冒了" DESCRIPTION "请假原因"
DESCRIPTION "员工请假申请"

IF days <= 0 THEN
    TALK "天数必须大于零。"
    RETURN "无效"
END IF

IF days > 3 THEN
    结果 = "需要经理批准"
ELSE
    结果 = "已批准"
END IF

TALK name + "请假" + days + "天，原因：" + reason + "（" + LEN(reason) + "个字）"
TALK "结果：${结果}"
RETURN 结果
