

def accepted(function, *arguments):
    try:
        function(*arguments)
        return "yes"
    except Exception:
        return "no"


def main():
    import sys

    with open(sys.argv[1]) as file:
        given = json.load(file)
    for call in given["calls"]:
        headers, body = call["headers"], call["body"].encode()
        print(accepted(verify, given["secret"], headers, body), accepted(verify_with_keys, given["keys"], headers, body))


main()
