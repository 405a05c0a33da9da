// A session of the client with which VS Code's developers test debug adapters.
const { DebugClient } = require('@vscode/debugadapter-testsupport');

async function main(port, program, line) {
    const client = new DebugClient('python', '', 'cudadrv');
    client.defaultTimeout = 120000;
    await client.start(port);
    await client.hitBreakpoint({ program }, { path: program, line, verified: false });
    console.log('breakpoint');
    const threadId = (await client.threadsRequest()).body.threads[0].id;
    await Promise.all([
        client.nextRequest({ threadId }),
        client.assertStoppedLocation('step', { path: program, line: line - 1 }),
    ]);
    console.log('next');
    await Promise.all([
        client.stepBackRequest({ threadId }),
        client.assertStoppedLocation('step', { path: program, line }),
    ]);
    console.log('back');
    await client.setBreakpointsRequest({ source: { path: program }, breakpoints: [] });
    let reason = '';
    while (reason !== 'exception') {
        const stopped = client.waitForEvent('stopped');
        await client.continueRequest({ threadId });
        reason = (await stopped).body.reason;
    }
    console.log(reason);
    await client.disconnectRequest();
    process.exit(0);
}

const [port, program, line] = process.argv.slice(2);
main(Number(port), program, Number(line)).catch((error) => {
    console.error(error);
    process.exit(1);
});
