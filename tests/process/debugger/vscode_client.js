// Sessions of the client with which VS Code's developers test debug adapters.
// Prints as JSON: the messages of the adapter, the requests of the session, and what it has found.
const { spawn } = require('child_process');
const { DebugClient } = require('@vscode/debugadapter-testsupport');

class Session extends DebugClient {
    constructor(program, lines) {
        super('python', '', 'cudadrv');
        this.defaultTimeout = 120000;
        [this.program, this.lines, this.messages, this.requests] = [program, lines, [], []];
    }

    startAdapter(command) {
        const adapter = spawn(command[0], command.slice(1), { stdio: ['pipe', 'pipe', 'inherit'] });
        this.connect(adapter.stdout, adapter.stdin);
    }

    dispatch(body) {
        this.messages.push(JSON.parse(body));
        super.dispatch(body);
    }

    send(command, args) {
        this.requests.push(command);
        return super.send(command, args);
    }

    async begin(options = {}, breakpoints = []) {
        const initialized = this.waitForEvent('initialized');
        await this.initializeRequest();
        await this.launchRequest({ program: this.program, ...options });
        await initialized;
        this.requests = [];
        if (breakpoints.length) {
            await this.setBreakpointsRequest({ source: { path: this.program }, breakpoints });
        }
        return this.stopAfter(() => this.configurationDoneRequest());
    }

    async stopAfter(request) {
        const stopped = this.waitForEvent('stopped');
        await request();
        return (await stopped).body;
    }

    async top(stop) {
        return (await this.stackTraceRequest({ threadId: stop.threadId })).body.stackFrames[0];
    }

    async scope(frame, name) {
        const { scopes } = (await this.scopesRequest({ frameId: frame.id })).body;
        const { variablesReference } = scopes.find((each) => each.name === name);
        const { variables } = (await this.variablesRequest({ variablesReference })).body;
        return Object.fromEntries(variables.map((each) => [each.name, each.value]));
    }

    async value(frame, expression) {
        return (await this.evaluateRequest({ expression, frameId: frame.id })).body.result;
    }
}

const sessions = {
    async steps(client) {
        const [line] = client.lines;
        const stop = await client.begin({}, [{ line }]);
        const { threadId } = stop;
        const next = await client.stopAfter(() => client.nextRequest({ threadId }));
        const after = await client.top(next);
        const back = await client.stopAfter(() => client.stepBackRequest({ threadId }));
        return [stop.reason, after.line, (await client.top(back)).line];
    },
    async wrong_index(client) {
        const stop = await client.begin();
        const frame = await client.top(stop);
        const { i, j } = await client.scope(frame, 'Locals');
        const back = await client.stopAfter(() => client.stepBackRequest(stop));
        return [stop.reason, frame.line, i, j, await client.value(await client.top(back), 'n')];
    },
    async missing_barrier(client) {
        const stop = await client.begin({ checks: 'race' });
        const frame = await client.top(stop);
        const name = 'tile[blockDim.x - 1 - i]';
        const info = await client.dataBreakpointInfoRequest({ name, frameId: frame.id });
        const { dataId } = info.body;
        await client.setDataBreakpointsRequest({ breakpoints: [{ dataId, accessType: 'write' }] });
        const writer = await client.stopAfter(() => client.reverseContinueRequest(stop));
        const its = await client.top(writer);
        return [stop.reason, frame.line, writer.reason, its.line, writer.threadId === stop.threadId];
    },
    async wrong_stream(client) {
        const [line] = client.lines;
        const stop = await client.begin({ order: 'late' }, [{ line }]);
        const frame = await client.top(stop);
        const queue = Object.values(await client.scope(frame, 'Host'));
        const copy = queue.find((each) => each.includes('has not run'));
        return [stop.reason, await client.value(frame, 'value'), copy];
    },
    async not_a_number(client) {
        const [line] = client.lines;
        const stop = await client.begin({}, [{ line, condition: 'isnan(share)' }]);
        const frame = await client.top(stop);
        const { row, sum, share } = await client.scope(frame, 'Locals');
        return [stop.reason, row, sum, share, await client.value(frame, 'x[row * n]')];
    },
};

async function main(adapter, port, name, program, lines) {
    const client = new Session(program, lines.map(Number));
    if (Number(port)) {
        await client.start(Number(port));
    } else {
        client.startAdapter(JSON.parse(adapter));
    }
    const found = await sessions[name](client);
    const { requests } = client;
    await client.disconnectRequest();
    console.log(JSON.stringify({ found, requests, messages: client.messages }));
    process.exit(0);
}

const [adapter, port, name, program, ...lines] = process.argv.slice(2);
main(adapter, port, name, program, lines).catch((error) => {
    console.error(error);
    process.exit(1);
});
