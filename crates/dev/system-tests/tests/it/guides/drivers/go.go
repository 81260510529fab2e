package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
)

func accepted(err error) string {
	if err == nil {
		return "yes"
	}
	return "no"
}

func main() {
	var given struct {
		Secret string
		Keys   []string
		Calls  []struct {
			Headers map[string]string
			Body    string
		}
	}
	text, err := os.ReadFile(os.Args[1])
	if err == nil {
		err = json.Unmarshal(text, &given)
	}
	if err != nil {
		panic(err)
	}
	for _, call := range given.Calls {
		headers := http.Header{}
		for name, value := range call.Headers {
			headers.Set(name, value)
		}
		body := []byte(call.Body)
		fmt.Println(accepted(verify(given.Secret, headers, body)), accepted(verifyWithKeys(given.Keys, headers, body)))
	}
}
