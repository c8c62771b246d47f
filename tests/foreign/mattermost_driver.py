"""A program on mattermostautodriver, as its documentation describes one. It reports what it sees as JSON lines, and
calls each method that our adapter uses when it is asked to.

Arguments: port of the server, token, ids of a channel and of a member. Ends when its standard input does.
"""

import asyncio
import json
import sys

from mattermostautodriver import AsyncTypedDriver
from mattermostautodriver.exceptions import InvalidOrMissingParameters, NotEnoughPermissions, ResourceNotFound

PORT, TOKEN, CHANNEL, MEMBER = int(sys.argv[1]), *sys.argv[2:5]


def report(what, **facts):
    sys.stdout.write(json.dumps({"what": what, **facts}) + "\n")
    sys.stdout.flush()


async def call_everything(driver):
    me = await driver.users.get_user("me")
    report("me", id=driver.client.userid, name=driver.client.username, is_bot=me["is_bot"])
    user = await driver.users.get_user(MEMBER)
    named = await driver.users.get_users_by_usernames([user["username"]])
    report("user", username=user["username"], zone=user["timezone"], same=named == [user])
    channels = [one["id"] for one in await driver.channels.get_channels_for_user("me")]
    teams = [one["display_name"] for one in await driver.teams.get_teams_for_user("me")]
    members = [one["user_id"] for one in await driver.channels.get_channel_members(CHANNEL, per_page=2)]
    channel = await driver.channels.get_channel(CHANNEL)
    inside = await driver.channels.get_channel_member(CHANNEL, MEMBER)
    in_team = await driver.teams.get_team_member(channel["team_id"], MEMBER)
    roles = [inside["roles"], inside["scheme_admin"], in_team["scheme_admin"]]
    report("lists", channels=channels, teams=teams, members=members, kind=channel["type"], roles=roles)
    root = await driver.posts.create_post(CHANNEL, "one")
    reply = await driver.posts.create_post(CHANNEL, "two", root_id=root["id"])
    await driver.posts.patch_post(root["id"], message="one more")
    found = await driver.posts.get_posts_for_channel(CHANNEL, per_page=2)
    since = await driver.posts.get_posts_for_channel(CHANNEL, since=reply["create_at"] - 1)
    report(
        "posts",
        texts=[found["posts"][one]["message"] for one in found["order"]],
        since=[since["posts"][one]["message"] for one in since["order"]],
        root=(await driver.posts.get_post(reply["id"]))["root_id"] == root["id"],
    )
    reaction = {"user_id": driver.client.userid, "post_id": root["id"], "emoji_name": "+1"}
    await driver.reactions.save_reaction(reaction)
    names = [one["emoji_name"] for one in await driver.reactions.get_reactions(root["id"])]
    await driver.reactions.delete_reaction("me", root["id"], "+1")
    report("reactions", names=names, left=await driver.reactions.get_reactions(root["id"]))
    uploaded = await driver.files.upload_file(files=("a.txt", b"content"), channel_id=CHANNEL)
    file = uploaded["file_infos"][0]["id"]
    await driver.posts.create_post(CHANNEL, "A file", file_ids=[file])
    info = await driver.files.get_file_info(file)
    report("file", name=info["name"], size=info["size"], content=(await driver.files.get_file(file)).text)
    direct = await driver.channels.create_direct_channel([driver.client.userid, MEMBER])
    await driver.posts.create_post(direct["id"], "In private")
    report("deleted", status=(await driver.posts.delete_post(reply["id"]))["status"])
    for call in (
        driver.posts.create_post("0" * 26, "x"),
        driver.posts.get_post("0" * 26),
        driver.users.get_user("nobody"),
    ):
        try:
            await call
        except (InvalidOrMissingParameters, NotEnoughPermissions, ResourceNotFound) as error:
            report("error", kind=type(error).__name__, id=error.error_id)
    await driver.channels.remove_user_from_channel(CHANNEL, driver.client.userid)
    report("end")


async def main():
    options = {
        "scheme": "http",
        "url": "127.0.0.1",
        "port": PORT,
        "token": TOKEN,
        "keepalive": True,
        "keepalive_delay": 0,
    }
    driver = AsyncTypedDriver(options)
    await driver.login()
    calls = set()

    async def handle(message):
        event = json.loads(message)
        name, data = event.get("event"), event.get("data")
        if name == "posted":
            post = json.loads(data["post"])
            report("posted", text=post["message"], kind=data["channel_type"], type=post["type"], root=post["root_id"])
            if post["message"] == "call everything":
                calls.add(asyncio.create_task(call_everything(driver)))
            if post["message"] == "please answer":
                await driver.posts.create_post(post["channel_id"], "Sure")
        elif name in ("post_edited", "post_deleted"):
            report(name, text=json.loads(data["post"])["message"])
        elif name == "reaction_added":
            report(name, emoji=json.loads(data["reaction"])["emoji_name"])
        elif name in ("user_added", "user_removed"):
            report(name, user=data["user_id"], channel=event["broadcast"]["channel_id"])
        elif name == "hello":
            report("hello", seq=event["seq"])

    listening = asyncio.create_task(driver.init_websocket(handle))
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    listening.cancel()


asyncio.run(main())
