import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const read = (path) => readFileSync(at(path), 'utf8');

test('the version is that of the product', { skip: !existsSync(at('../../Cargo.toml')) }, () => {
	const { version } = JSON.parse(read('package.json'));
	assert.equal(version, /^version = "(.+)"$/m.exec(read('../../Cargo.toml'))[1]);
	assert.match(read('CHANGELOG.md'), new RegExp(`^## ${version.replaceAll('.', '\\.')}$`, 'm'));
});

test('the package has no dependencies, and its entries exist', () => {
	const { dependencies, n8n } = JSON.parse(read('package.json'));
	assert.equal(dependencies, undefined);
	for (const path of [...n8n.nodes, ...n8n.credentials]) assert.ok(existsSync(at(path)), path);
});

test('the workflow file has no credential data and no address but an example', () => {
	const text = read('workflows/ask-and-wait.json');
	assert.deepEqual([...text.matchAll(/https?:\/\/[\w.]+/g)].map(([url]) => url), ['https://countersign.example.com']);
	assert.doesNotMatch(text, /csk_\w/);
});
