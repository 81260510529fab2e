
function accepted(callable $check): string
{
    try {
        $check();
        return 'yes';
    } catch (Throwable) {
        return 'no';
    }
}

$given = json_decode(file_get_contents($argv[1]), true);
foreach ($given['calls'] as $call) {
    echo accepted(fn () => verify($given['secret'], $call['headers'], $call['body'])), ' ',
        accepted(fn () => verify_with_keys($given['keys'], $call['headers'], $call['body'])), "\n";
}
